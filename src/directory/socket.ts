/**
 * Opens sockets to servers: TCP, or TLS whose certificate names the host. A socket is unencrypted only if that is
 * configured.
 */

import { connect, isIP, type Socket } from 'node:net';
import {
  type ConnectionOptions,
  checkServerIdentity,
  connect as connectTls,
  type PeerCertificate,
  type SecureContext,
  TLSSocket,
} from 'node:tls';
import { Fault, reasonOf } from '../domain/errors.ts';
import type { Deadline } from './deadline.ts';
import type { DirectoryUrl } from './settings.ts';
import { askForTls } from './start-tls.ts';

/** Receives the completed stages of a connection, for the steps of a test. */
export type ConnectionObserver = (
  stage: 'connect' | 'tls',
  detail: string,
  data?: Readonly<Record<string, unknown>>,
) => void;

export interface ServerTarget {
  readonly url: DirectoryUrl;
  readonly startTls: boolean;
  /** The trusted authorities; undefined if TLS is not used. */
  readonly trust: SecureContext | undefined;
}

/** A failure of TLS on an open TCP connection. */
export class TlsFault extends Fault {}

/** @throws Fault; a TlsFault if TLS failed */
export async function openSocket(
  target: ServerTarget,
  deadline: Deadline,
  observe?: ConnectionObserver,
): Promise<Socket> {
  const { url, startTls } = target;
  const address = { host: url.host, port: url.port, noDelay: true };
  const opened = url.secure ? protectedBy(target, address) : connect(address);
  const cancel = deadline.onPassing(() => opened.destroy(deadline.fault()));
  try {
    await event(opened, 'connect');
    observe?.('connect', `connected to ${url.text}`, { address: opened.remoteAddress, port: opened.remotePort });
    if (opened instanceof TLSSocket) return await secured(url, opened, observe);
    return startTls ? await upgraded(target, opened, deadline, observe) : opened;
  } catch (error) {
    opened.destroy();
    if (error instanceof TlsFault) throw error;
    throw new Fault(`${url.text}: ${reasonOf(error)}`);
  } finally {
    cancel();
  }
}

/** Begins TLS. The certificate must come from a trusted authority and name the host of the URL. */
function protectedBy({ url, trust }: ServerTarget, address: ConnectionOptions): TLSSocket {
  const socket: TLSSocket = connectTls({
    ...address,
    ...(isIP(url.host) === 0 ? { servername: url.host } : {}),
    ...(trust === undefined ? {} : { secureContext: trust }),
    rejectUnauthorized: true,
    checkServerIdentity: () => wrongName(socket, url.host),
  });
  // To check the name, Node reads every certificate of the chain into an object, which takes a fifth of the time of
  // TLS. The chain is verified before that, and the check above reads the certificate itself.
  return Object.defineProperty(socket, 'getPeerCertificate', { value: () => undefined });
}

/** Checks the name by RFC 6125. Returns undefined if the certificate is valid for the host. */
function wrongName(socket: TLSSocket, host: string): Error | undefined {
  const certificate = socket.getPeerX509Certificate();
  const name = isIP(host) === 0 ? certificate?.checkHost(host) : certificate?.checkIP(host);
  // The error has the reason.
  return name === undefined ? checkServerIdentity(host, peerCertificate(socket)) : undefined;
}

function peerCertificate(socket: TLSSocket): PeerCertificate {
  return TLSSocket.prototype.getPeerCertificate.call(socket, false);
}

async function upgraded(
  target: ServerTarget,
  plain: Socket,
  deadline: Deadline,
  observe: ConnectionObserver | undefined,
): Promise<TLSSocket> {
  try {
    await askForTls(plain);
  } catch (error) {
    throw new TlsFault(`${target.url.text}: ${reasonOf(error)}`);
  }
  const socket = protectedBy(target, { socket: plain, host: target.url.host });
  const cancel = deadline.onPassing(() => socket.destroy(deadline.fault()));
  try {
    return await secured(target.url, socket, observe);
  } finally {
    cancel();
  }
}

async function secured(
  url: DirectoryUrl,
  socket: TLSSocket,
  observe: ConnectionObserver | undefined,
): Promise<TLSSocket> {
  try {
    await event(socket, 'secureConnect');
    if (!isVerified(socket)) throw new Error('the connection is not protected');
  } catch (error) {
    throw new TlsFault(`${url.text}: ${reasonOf(error)}`);
  }
  // Another read of the certificate takes a tenth of the time of TLS, so it happens only for an observer.
  if (observe !== undefined) {
    const { subject, issuer, valid_to: validTo } = peerCertificate(socket);
    observe('tls', `${socket.getProtocol()}, certificate of ${url.host} verified`, {
      protocol: socket.getProtocol(),
      subject: subject?.CN,
      issuer: issuer?.CN,
      validTo,
    });
  }
  return socket;
}

/** Reports whether only the host of the URL can read the data that is written to the socket. */
export function isVerified(socket: Socket): boolean {
  return socket instanceof TLSSocket && socket.encrypted && socket.authorized && !socket.destroyed;
}

/** Waits for an event. Rejects if the socket fails or closes before it. */
function event(socket: Socket, name: 'connect' | 'secureConnect'): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      socket.off(name, arrived).off('error', failed).off('close', closed);
      // A failure before the next listener appears when the socket is used.
      socket.on('error', () => undefined);
      act();
    };
    const arrived = (): void => settle(resolve);
    const failed = (error: Error): void => settle(() => reject(error));
    const closed = (): void => settle(() => reject(new Error('the server closed the connection')));
    socket.on(name, arrived).on('error', failed).on('close', closed);
  });
}
