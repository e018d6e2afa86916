/**
 * The settings of each client: the address, a model, and the key in an environment variable. Every client sends the key
 * as `Authorization: Bearer`, the header that Postern reads.
 */

import { connect as text } from '../../text/en/connect.ts';
import { chatSample, type Sample } from './sample.ts';

export interface Place {
  /** The gateway's address, without a slash at the end. */
  readonly address: string;
  readonly model: string;
}

export interface Snippet {
  /** The file, the language, or the place to paste it into. */
  readonly title: string;
  readonly code: string;
}

export const CLIENTS = [
  'curl',
  'openai-python',
  'openai-node',
  'anthropic-python',
  'anthropic-node',
  'langchain',
  'agents',
] as const;
export type ClientKind = (typeof CLIENTS)[number];

const VARIABLE = '$POSTERN_API_KEY';

/**
 * The variables that the SDKs and most coding agents read by themselves. Anthropic's SDKs append `/v1` to the address,
 * and several of their versions send `ANTHROPIC_API_KEY` in a header of their own: the token always goes into
 * `Authorization`.
 */
export function envOf(address: string, key: string): string {
  return [
    `POSTERN_API_KEY=${key}`,
    `OPENAI_API_KEY=${key}`,
    `OPENAI_BASE_URL=${address}/v1`,
    `ANTHROPIC_AUTH_TOKEN=${key}`,
    `ANTHROPIC_BASE_URL=${address}`,
    '',
  ].join('\n');
}

/** @param key default: the variable that holds it */
export function curlOf(address: string, { method, path, body }: Sample, key = VARIABLE): string {
  const lines = [`curl ${inShell(`${address}${path}`)}`, `  -H "Authorization: Bearer ${key}"`];
  if (body !== undefined) lines.push('  -H "Content-Type: application/json"', `  -d ${inShell(JSON.stringify(body))}`);
  else if (method === 'POST') lines.push('  -X POST');
  return lines.join(' \\\n');
}

/** Returns the text as one word of a POSIX shell. */
export function inShell(word: string): string {
  return /^[\w./:@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function snippetsOf(kind: ClientKind, { address, model }: Place): readonly Snippet[] {
  // The escapes of JSON are those of Python, JavaScript and TOML, too.
  const name = JSON.stringify(model);
  const v1 = JSON.stringify(`${address}/v1`);
  const root = JSON.stringify(address);
  const install = (command: string): Snippet => ({ title: text.install, code: command });
  switch (kind) {
    case 'curl':
      return [{ title: text.shell, code: curlOf(address, chatSample(model)) }];
    case 'openai-python':
      return [
        install('pip install openai'),
        {
          title: 'Python',
          code: `import os
from openai import OpenAI

client = OpenAI(
    base_url=${v1},
    api_key=os.environ["POSTERN_API_KEY"],
)
answer = client.chat.completions.create(
    model=${name},
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`,
        },
      ];
    case 'openai-node':
      return [
        install('npm install openai'),
        {
          title: 'JavaScript',
          code: `import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: ${v1},
  apiKey: process.env.POSTERN_API_KEY,
});
const answer = await client.chat.completions.create({
  model: ${name},
  messages: [{ role: 'user', content: 'Hello' }],
});
console.log(answer.choices[0].message.content);`,
        },
      ];
    case 'anthropic-python':
      return [
        install('pip install anthropic'),
        {
          title: 'Python',
          code: `import os
from anthropic import Anthropic

client = Anthropic(
    base_url=${root},
    auth_token=os.environ["POSTERN_API_KEY"],
)
message = client.messages.create(
    model=${name},
    max_tokens=256,
    messages=[{"role": "user", "content": "Hello"}],
)
print(message.content[0].text)`,
        },
      ];
    case 'anthropic-node':
      return [
        install('npm install @anthropic-ai/sdk'),
        {
          title: 'JavaScript',
          code: `import Anthropic from '@anthropic-ai/sdk';

const client = new Anthropic({
  baseURL: ${root},
  authToken: process.env.POSTERN_API_KEY,
});
const message = await client.messages.create({
  model: ${name},
  max_tokens: 256,
  messages: [{ role: 'user', content: 'Hello' }],
});
console.log(message.content[0].text);`,
        },
      ];
    case 'langchain':
      return [
        install('pip install langchain-openai'),
        {
          title: 'Python',
          code: `import os
from langchain_openai import ChatOpenAI

llm = ChatOpenAI(
    model=${name},
    base_url=${v1},
    api_key=os.environ["POSTERN_API_KEY"],
)
print(llm.invoke("Hello").content)`,
        },
      ];
    case 'agents':
      return [
        {
          title: 'Claude Code',
          code: `export ANTHROPIC_BASE_URL=${inShell(address)}
export ANTHROPIC_AUTH_TOKEN="${VARIABLE}"
export ANTHROPIC_MODEL=${inShell(model)}
claude`,
        },
        {
          title: 'Codex, ~/.codex/config.toml',
          code: `model = ${name}
model_provider = "postern"

[model_providers.postern]
name = "Postern"
base_url = ${v1}
env_key = "POSTERN_API_KEY"
wire_api = "responses"`,
        },
        {
          title: 'aider',
          code: `export OPENAI_API_BASE=${inShell(`${address}/v1`)}
export OPENAI_API_KEY="${VARIABLE}"
aider --model ${inShell(`openai/${model}`)}`,
        },
      ];
    default:
      return kind satisfies never;
  }
}
