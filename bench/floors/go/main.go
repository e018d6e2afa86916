// Floor is an otherwise empty grpc-go server: every Check is answered with one fixed allow, as raw bytes.
//
//	floor -addr 127.0.0.1:9291 -bytes 1000
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
)

// raw passes messages through as bytes.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)   { return *(v.(*[]byte)), nil }
func (raw) Unmarshal(b []byte, v any) error { *(v.(*[]byte)) = append([]byte(nil), b...); return nil }
func (raw) Name() string                    { return "proto" }

// fixedAllow is a CheckResponse with an empty google.rpc.Status, code 0. An unknown field makes it longer.
func fixedAllow(size int) []byte {
	status := []byte{0x0a, 0x00}
	filler := size - len(status) - 3
	if filler < 128 {
		return status
	}
	answer := append(status, 0x7a, byte(filler&127|128), byte(filler>>7))
	return append(answer, make([]byte, filler)...)
}

func main() {
	addr := flag.String("addr", "127.0.0.1:9291", "where to listen")
	size := flag.Int("bytes", 2, "length of the answer")
	flag.Parse()
	encoding.RegisterCodec(raw{})
	answer := fixedAllow(*size)
	check := func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var request []byte
		if err := decode(&request); err != nil {
			return nil, err
		}
		return &answer, nil
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "envoy.service.auth.v3.Authorization",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Check", Handler: check}},
	}, struct{}{})
	if err := server.Serve(listener); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
