/** The telemetry of a server's process, from its configuration. */

import { hostname } from 'node:os';
import manifest from '../../package.json' with { type: 'json' };
import type { Config, Secrets } from '../config/config.ts';
import type { DecisionTarget } from '../telemetry/decision-sinks.ts';
import type { OtlpTarget } from '../telemetry/otlp/exporter.ts';
import { attributesOf } from '../telemetry/otlp/value.ts';
import { createTelemetry, type Telemetry, type TelemetryOptions } from '../telemetry/telemetry.ts';

interface Configured {
  readonly config: Config;
  readonly secrets: Secrets;
}

/** It also logs a failure that no caller awaited: that belongs to one request, and must not end all others. */
export async function serverTelemetry({ config, secrets }: Configured): Promise<Telemetry> {
  const otlp = otlpTarget(config, secrets);
  const telemetry = createTelemetry({
    level: config.log.level,
    decisions: { target: decisionTarget(config, otlp), allowOneIn: config.log.decisions.allowOneIn },
    tracing: await tracingOf(config, otlp),
  });
  process.on('unhandledRejection', (error) => telemetry.log.error({ err: error }, 'an error was not handled'));
  return telemetry;
}

/** Loads the module only if it is used. */
async function tracingOf(
  { traces: { sample } }: Pick<Config, 'traces'>,
  target: OtlpTarget | undefined,
): Promise<TelemetryOptions['tracing']> {
  if (sample === 'off' || target === undefined) return undefined;
  const { createTracing } = await import('../telemetry/tracing.ts');
  return (reports) => createTracing({ ...reports, sample, target });
}

function decisionTarget({ log }: Pick<Config, 'log'>, otlp: OtlpTarget | undefined): DecisionTarget | undefined {
  const { to, file } = log.decisions;
  switch (to) {
    case 'stdout':
      return { kind: 'stdout' };
    case 'file':
      return file === undefined ? undefined : { kind: 'file', path: file };
    case 'otlp':
      return otlp && { kind: 'otlp', target: otlp };
    case 'off':
      return undefined;
    default:
      return to satisfies never;
  }
}

/** Undefined without a collector. */
function otlpTarget(
  { otlp }: Pick<Config, 'otlp'>,
  { otlpHeaders }: Pick<Secrets, 'otlpHeaders'>,
): OtlpTarget | undefined {
  if (otlp.endpoint === undefined) return undefined;
  return {
    endpoint: otlp.endpoint,
    headers: headersOf(otlpHeaders ?? ''),
    resource: attributesOf({
      'service.name': 'postern',
      'service.version': manifest.version,
      'host.name': hostname(),
      'process.pid': process.pid,
    }),
  };
}

/** Reads `name=value,name=value`, with percent-encoded values. */
function headersOf(text: string): Readonly<Record<string, string>> {
  if (text === '') return {};
  return Object.fromEntries(
    text.split(',').map((pair) => {
      const at = pair.indexOf('=');
      return [pair.slice(0, at).trim(), decoded(pair.slice(at + 1))];
    }),
  );
}

/** Returns a value with a wrong percent-encoding unchanged. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
