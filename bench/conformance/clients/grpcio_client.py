"""The cases of the gRPC clients with grpcio: reads the table of cases and the messages from a folder, and prints the end of
each case as one line of JSON.

python3 grpcio_client.py 127.0.0.1:9191 messages [ca.pem]
"""

import json
import pathlib
import sys
import threading

import grpc

LIMIT_SECONDS = 30
CANCEL_AFTER_SECONDS = 0.3


def connect(address, ca):
    options = [("grpc.max_send_message_length", -1), ("grpc.ssl_target_name_override", "localhost")]
    if ca is None:
        return grpc.insecure_channel(address, options)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(ca.read_bytes()), options)


def run(channel, case, message):
    call = channel.unary_unary(case["method"])
    timeout = case["deadlineMs"] / 1000 or LIMIT_SECONDS
    future = call.future(message, timeout=timeout)
    if case["isCancelled"]:
        threading.Timer(CANCEL_AFTER_SECONDS, future.cancel).start()
    try:
        return {"name": case["name"], "status": 0, "answer": future.result().hex()}
    except grpc.FutureCancelledError:
        return {"name": case["name"], "status": grpc.StatusCode.CANCELLED.value[0], "answer": ""}
    except grpc.RpcError as error:
        return {"name": case["name"], "status": error.code().value[0], "answer": ""}


def main(address, folder, ca=None):
    directory = pathlib.Path(folder)
    with connect(address, None if ca is None else pathlib.Path(ca)) as channel:
        for case in json.loads((directory / "cases.json").read_text()):
            message = (directory / f"{case['message']}.bin").read_bytes()
            print(json.dumps(run(channel, case, message)), flush=True)


main(*sys.argv[1:])
