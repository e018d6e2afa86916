/**
 * Short-lived certificates for tests: an authority and what it signs, written as DER by hand, so that no tool has to be
 * there.
 */

import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

export interface Certificate {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface Authority extends Certificate {
  /** A certificate for one DNS name, for servers and clients. */
  issue(dnsName: string): Certificate;
}

export function makeAuthority(): Authority {
  const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = 'test authority';
  const make = (subject: string, publicKey: KeyObject, extensions: readonly Buffer[]): string =>
    pem('CERTIFICATE', certificate({ issuer: name, subject, publicKey, signWith: own.privateKey, extensions }));
  return {
    certPem: make(name, own.publicKey, [extension('551d13', true, sequence(tlv(0x01, Buffer.of(0xff))))]),
    keyPem: own.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    issue(dnsName) {
      const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const names = extension('551d11', false, sequence(tlv(0x82, Buffer.from(dnsName))));
      return {
        certPem: make(dnsName, pair.publicKey, [names]),
        keyPem: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      };
    },
  };
}

interface Parts {
  readonly issuer: string;
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly signWith: KeyObject;
  readonly extensions: readonly Buffer[];
}

/** RFC 5280, section 4.1, with ecdsa-with-SHA256. */
function certificate(parts: Parts): Buffer {
  const algorithm = sequence(oid('2a8648ce3d040302'));
  const dayMs = 86_400_000;
  const body = sequence(
    tlv(0xa0, tlv(0x02, Buffer.of(2))),
    tlv(0x02, Buffer.concat([Buffer.of(1), randomBytes(15)])),
    algorithm,
    commonName(parts.issuer),
    sequence(utcTime(Date.now() - dayMs), utcTime(Date.now() + dayMs)),
    commonName(parts.subject),
    parts.publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, sequence(...parts.extensions)),
  );
  const signature = sign('sha256', body, parts.signWith);
  return sequence(body, algorithm, tlv(0x03, Buffer.concat([Buffer.of(0), signature])));
}

function commonName(text: string): Buffer {
  return sequence(tlv(0x31, sequence(oid('550403'), tlv(0x0c, Buffer.from(text)))));
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(critical ? [tlv(0x01, Buffer.of(0xff))] : []), tlv(0x04, value));
}

function utcTime(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]/g, '').slice(2, 14);
  return tlv(0x17, Buffer.from(`${digits}Z`));
}

function oid(hex: string): Buffer {
  return tlv(0x06, Buffer.from(hex, 'hex'));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tlv(0x30, Buffer.concat(parts));
}

function tlv(tag: number, value: Buffer): Buffer {
  const { length } = value;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.of(tag, ...size), value]);
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}
