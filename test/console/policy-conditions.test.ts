import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DifferenceBox } from '../../client/index.ts';
import { boxPieces } from '../../console/src/screens/difference/sentence.ts';
import { EMPTY_POLICY, type PolicyFields, resourceFault } from '../../console/src/screens/policy/draft.ts';
import {
  areLit,
  DAYS,
  filled,
  type Hours,
  hoursOf,
  isBetween,
  isWindow,
  NO_HOURS,
  placeAt,
  WEEK_HOURS,
  windowsOf,
} from '../../console/src/screens/policy/hours.ts';
import { isAddress, isNetwork, networksOutside, networkWith } from '../../console/src/screens/policy/networks.ts';
import { summaryText } from '../../console/src/screens/policy/summary.ts';
import { inNetwork, parseAddress, parseNetwork } from '../../src/decision/address.ts';
import { dayOfWeek, minuteOfDay, minuteOfWeek } from '../../src/decision/clock.ts';
import { RESOURCE_KINDS } from '../../src/decision/model.ts';
import { isResourcePattern } from '../../src/decision/validate.ts';
import { compileWeeklyHours, inWeeklyHours, parseWeeklyWindow } from '../../src/decision/weekly-hours.ts';
import { runs } from '../support/properties.ts';

describe('the field for resources', () => {
  it('accepts the texts that the server accepts, and no others', () => {
    const kind = fc.constantFrom(...RESOURCE_KINDS, 'planets', '');
    const parts = fc.array(fc.oneof(kind, fc.constantFrom('/', '*', 'x', 's', ' ')), { maxLength: 5 });
    fc.assert(
      fc.property(
        parts.map((pieces) => pieces.join('')),
        (text) => {
          expect([text, resourceFault(text) === undefined]).toEqual([text, isResourcePattern(text)]);
        },
      ),
      { numRuns: runs(2000), examples: [['models*'], ['modelsx'], ['models/'], ['models/x']] },
    );
  });
});

const hour = fc.integer({ min: 0, max: 23 });
/**
 * Any cells, and grids such as people draw: a few rectangles, and hours in a row over midnights, often a whole day of
 * them.
 */
const hours: fc.Arbitrary<Hours> = fc.oneof(
  fc.array(fc.boolean(), { minLength: WEEK_HOURS, maxLength: WEEK_HOURS }),
  fc
    .array(
      fc.record({ from: fc.integer({ min: 0, max: 6 }), to: fc.integer({ min: 0, max: 6 }), start: hour, end: hour }),
      {
        maxLength: 4,
      },
    )
    .map((boxes) =>
      boxes.reduce(
        (drawn, { from, to, start, end }) => filled(drawn, { day: from, hour: start }, { day: to, hour: end }, true),
        NO_HOURS,
      ),
    ),
  fc
    .array(
      fc.record({
        start: fc.integer({ min: 0, max: WEEK_HOURS - 1 }),
        length: fc.oneof(fc.constantFrom(23, 24, 25), fc.integer({ min: 1, max: 60 })),
      }),
      { maxLength: 3 },
    )
    .map((rows) => {
      const drawn = [...NO_HOURS];
      for (const { start, length } of rows) for (let at = 0; at < length; at++) drawn[(start + at) % WEEK_HOURS] = true;
      return drawn;
    }),
);

/** The plainest windows of the same hours: one for each lit cell. */
function naiveWindows(cells: Hours): string[] {
  return cells.flatMap((isLit, index) => {
    const start = index % 24;
    const text = (value: number) => `${String(value).padStart(2, '0')}:00`;
    return isLit ? [`${DAYS[Math.floor(index / 24)]} ${text(start)}-${text(start + 1)}`] : [];
  });
}

/** Returns the decision of the server for each minute of the week, 84 windows at a time. */
function servedMinutes(windows: readonly string[]): boolean[] {
  const parts = Array.from({ length: Math.ceil(windows.length / 84) }, (_, part) => {
    const compiled = compileWeeklyHours(windows.slice(part * 84, (part + 1) * 84));
    if (compiled === undefined) throw new Error(`The server refuses ${windows.join(', ')}`);
    return compiled;
  });
  return Array.from({ length: WEEK_HOURS * 60 }, (_, minute) => parts.some((edges) => inWeeklyHours(edges, minute)));
}

describe('the windows that the week grid writes', () => {
  it('are to the server the lit hours, minute by minute, and at most 84', () => {
    fc.assert(
      fc.property(hours, (cells) => {
        const windows = windowsOf(cells);
        expect(windows.length).toBeLessThanOrEqual(84);
        expect(servedMinutes(windows)).toEqual(servedMinutes(naiveWindows(cells)));
      }),
      { numRuns: runs(150) },
    );
  });

  it('give the same grid again', () => {
    fc.assert(
      fc.property(hours, (cells) => {
        expect(hoursOf(windowsOf(cells))).toEqual(cells);
      }),
    );
  });

  it.each([
    [['Mon-Fri 08:00-18:00', 'Sat 09:00-13:00']],
    [['Mon-Sun 22:00-06:00']],
    [['Sat-Sun 00:00-24:00']],
    [['Sat-Mon 10:00-12:00']],
    [['Mon 00:00-08:00', 'Fri 18:00-24:00', 'Sat-Sun 00:00-24:00']],
    [['Mon-Sun 00:00-24:00']],
    [['Sun 23:00-01:00']],
    [['Mon 05:00-24:00', 'Tue 00:00-05:00']],
    [['Mon 05:00-04:00']],
    [[]],
  ])('are as people write them: %j', (windows) => {
    expect(windowsOf(hoursOf(windows) ?? [])).toEqual(windows);
  });
});

describe('the week grid', () => {
  const day = fc.constantFrom('Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun', 'mon', 'Foo', '');
  const time = fc.oneof(
    fc
      .tuple(fc.integer({ min: 0, max: 25 }), fc.constantFrom('00', '30', '60'))
      .map(([h, m]) => `${String(h).padStart(2, '0')}:${m}`),
    fc.constantFrom('24:00', '8:00', ''),
  );
  const text = fc.tuple(day, fc.option(day), time, time).map(([first, last, from, to]) => {
    return `${first}${last === null ? '' : `-${last}`} ${from}-${to}`;
  });

  it('reads the windows that the server reads, as the server does', () => {
    fc.assert(
      fc.property(text, (window) => {
        const read = parseWeeklyWindow(window);
        expect(isWindow(window)).toBe(read !== undefined);
        const cells = hoursOf([window]);
        const isWhole = read !== undefined && read.start % 60 === 0 && read.length % 60 === 0;
        expect(cells !== undefined).toBe(isWhole);
        if (cells === undefined) return;
        const served = servedMinutes([window]);
        expect(cells).toEqual(Array.from(cells, (_, index) => served[index * 60]));
      }),
      { numRuns: runs(1000) },
    );
  });

  it('fills the rectangle of two places and nothing else', () => {
    const place = fc.record({ day: fc.integer({ min: -1, max: 6 }), hour: fc.integer({ min: -1, max: 23 }) });
    fc.assert(
      fc.property(hours, place, place, fc.boolean(), (cells, one, other, isLit) => {
        const after = filled(cells, one, other, isLit);
        for (const [index, was] of cells.entries()) {
          const inside = isBetween({ day: Math.floor(index / 24), hour: index % 24 }, one, other);
          expect(after[index]).toBe(inside ? isLit : was);
        }
        if (isLit) expect(areLit(after, one, other)).toBe(true);
      }),
    );
  });

  it('finds the cell of an instant as the server does', () => {
    const zone = fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Pacific/Apia');
    const instant = fc.date({ min: new Date('2020-01-01'), max: new Date('2035-01-01'), noInvalidDate: true });
    fc.assert(
      fc.property(instant, zone, (time, name) => {
        const minute = minuteOfWeek(name, time.getTime()) ?? -1;
        expect(placeAt(time, name)).toEqual({ day: dayOfWeek(minute), hour: Math.floor(minuteOfDay(minute) / 60) });
      }),
    );
    expect(placeAt(new Date(), 'Europe/Nowhere')).toBeUndefined();
  });
});

describe('the sentence of a policy', () => {
  const chat: PolicyFields = { ...EMPTY_POLICY, actions: ['chat:*'] };

  /**
   * Reads the sentence as a person does: the minutes at which it says that chat is denied; undefined if it leaves
   * windows out.
   */
  function minutesSaid(sentence: string): readonly boolean[] | undefined {
    if (/\d+ more/.test(sentence)) return undefined;
    const isAlways = sentence.includes('at any time');
    if (isAlways || sentence.includes('at no time')) return new Array<boolean>(WEEK_HOURS * 60).fill(isAlways);
    const said = new Array<boolean>(WEEK_HOURS * 60).fill(false);
    for (const [, first = '', last, from = '', to = ''] of sentence.matchAll(
      /(\w{3})(?:-(\w{3}))? (\d\d):00-(\d\d):00/g,
    )) {
      for (const day of daysBetween(first, last ?? first)) {
        const begin = Number(from);
        const end = Number(to) > begin ? Number(to) : Number(to) + 24;
        for (let minute = begin * 60; minute < end * 60; minute++) said[(day * 1440 + minute) % said.length] = true;
      }
    }
    return sentence.includes('outside') ? said.map((isIn) => !isIn) : said;
  }

  function daysBetween(first: string, last: string): readonly number[] {
    const names: readonly string[] = DAYS;
    const days = [names.indexOf(first)];
    while (names[days.at(-1) ?? 0] !== last) days.push(((days.at(-1) ?? 0) + 1) % 7);
    return days;
  }

  it('says the minutes at which the server denies, and counts windows that it does not name', () => {
    const drawn = hours.filter((cells) => cells.some(Boolean));
    fc.assert(
      fc.property(drawn, fc.boolean(), (cells, is) => {
        const windows = windowsOf(cells);
        const conditions = { weekly_hours: is ? { in: windows } : { not_in: windows } };
        const sentence = summaryText({ ...chat, conditions }, 'UTC');
        const said = minutesSaid(sentence);
        if (said === undefined) expect(sentence).toContain(`${windows.length - 3} more`);
        else expect(said).toEqual(servedMinutes(windows).map((isIn) => isIn === is));
      }),
      { numRuns: runs(200) },
    );
  });

  it.each<[string, Partial<PolicyFields>]>([
    [
      'Denies embeddings outside Mon-Fri 08:00-18:00 (UTC) to developers.',
      {
        actions: ['embeddings:*'],
        applies_to: 'roles',
        attached_roles: ['developer'],
        conditions: { weekly_hours: { not_in: ['Mon-Fri 08:00-18:00'] } },
      },
    ],
    ['Denies chat to everyone.', {}],
    ['Denies nothing yet to everyone.', { actions: [] }],
    [
      'Allows everything to no role yet, because none is attached.',
      { effect: 'allow', actions: ['*'], applies_to: 'roles' },
    ],
    [
      'Off. When on, it denies chat on models/gpt-* and models/o3 to holders of interns.',
      { enabled: false, resources: ['models/gpt-*', 'models/o3'], applies_to: 'roles', attached_roles: ['interns'] },
    ],
    [
      'Denies chat except on Sat and Sun during 22:00-06:00 (Asia/Tokyo) from outside 3 networks to everyone.',
      {
        conditions: {
          day_of_week: { not_in: ['Sat', 'Sun'] },
          time: { between: ['22:00', '06:00'] },
          ip_address: { not_in: ['10.0.0.0/8', '::1', '192.0.2.7'] },
          timezone: 'Asia/Tokyo',
        },
      },
    ],
    ['Denies read of anything and x:y to everyone.', { actions: ['*:read', 'x:y'] }],
  ])('%s', (sentence, change) => {
    expect(summaryText({ ...chat, ...change }, 'UTC')).toBe(sentence);
  });
});

describe('the networks of a condition', () => {
  const v4 = fc.ipV4();
  const v6 = fc.oneof(
    fc.ipV6(),
    v4.map((text) => `::ffff:${text}`),
    v4.map((text) => `64:ff9b::${text}`),
  );
  const odd = fc.constantFrom(
    '',
    '1',
    '01.2.3.4',
    '1.2.3.256',
    '::',
    ':::',
    '1::2::3',
    'fe80::1%eth0',
    'fe80::1%',
    '1.2.3.4%1',
    '1:2:3',
  );
  const address = fc.oneof(v4, v6, odd);
  const length = fc.oneof(fc.integer({ min: 0, max: 130 }).map(String), fc.constantFrom('08', '', '+1'));
  /** Mostly one whose host bits are not set. */
  const block = fc.oneof(
    fc.tuple(address, length).map(([text, bits]) => `${text}/${bits}`),
    fc
      .tuple(
        fc.constantFrom('0.0.0.0', '10.0.0.0', '128.0.0.0', '::', '2001:db8::', '::ffff:10.0.0.0', '::ffff:0:0'),
        length,
      )
      .map((pair) => pair.join('/')),
    address,
  );

  it('are read as the server reads them', () => {
    fc.assert(
      fc.property(address, block, (one, network) => {
        expect(isAddress(one)).toBe(parseAddress(one) !== undefined);
        expect(isNetwork(network)).toBe(parseNetwork(network) !== undefined);
      }),
      { numRuns: runs(2000) },
    );
  });

  it('hold an address where the server says so', () => {
    const near = fc.oneof(address, fc.constantFrom('10.0.0.1', '128.0.0.1', '2001:db8::1', '::ffff:10.0.0.7', '::1'));
    fc.assert(
      fc.property(near, fc.array(block, { maxLength: 4 }), (one, networks) => {
        const parsed = parseAddress(one);
        const served = networks.find((text) => {
          const network = parseNetwork(text);
          return parsed !== undefined && network !== undefined && inNetwork(parsed, network);
        });
        expect(networkWith(networks, one)).toBe(served);
      }),
      { numRuns: runs(2000) },
    );
  });

  it('leave exactly the addresses outside of them', () => {
    const near = fc.oneof(v4, v6, fc.constantFrom('10.0.0.1', '128.0.0.1', '2001:db8::1', '::1'));
    fc.assert(
      fc.property(near, fc.array(block, { maxLength: 4 }), (one, networks) => {
        const outside = networksOutside(networks);
        expect(outside.every(isNetwork)).toBe(true);
        expect(networkWith(outside, one) === undefined).toBe(networkWith(networks, one) !== undefined);
      }),
      { numRuns: runs(500) },
    );
  });
});

describe('the sentence of a box of requests', () => {
  const box: DifferenceBox = {
    principals: { roles: ['analyst'], without_roles: [], exact: true, users: 12, keys: 40 },
    permission: 'chat:write',
    permissions: ['chat:write'],
    self: false,
    resources: { models: ['llama-*'] },
    except: { models: ['llama-guard'] },
    by: 'no-llama',
    by_kind: 'policy',
    witness: {
      subject: 'usr_01k0000000000000000000000a',
      method: 'POST',
      path: '/v1/chat/completions',
      model: 'llama-3',
      body: '{"model":"llama-3"}',
      client_ip: '10.0.0.1',
      time: '2026-11-23T17:00:00Z',
    },
    recent_requests: 7400,
  };
  const set = { patterns: ['a*'], also: [], except: [] };
  it.each<readonly [string, Partial<DifferenceBox>]>([
    [
      'analyst may no longer chat:write on models llama-*, except llama-guard, from 10.0.0.0/8, Mon-Fri 18:00-20:00 Europe/Berlin.',
      { addresses: ['10.0.0.0/8'], week: ['Mon-Fri 18:00-20:00'], timezone: 'Europe/Berlin' },
    ],
    [
      'Everyone may no longer chat:write on any model.',
      {
        principals: { ...box.principals, roles: [] },
        resources: { models: ['*'] },
        except: {},
      },
    ],
    [
      '12 users and 40 keys among the holders of analyst may no longer chat:write on models a* or no named model.',
      {
        principals: { ...box.principals, exact: false },
        regions: [{ kind: 'models', each: [set], some: [], unnamed: true }],
      },
    ],
    [
      'analyst without auditor may no longer rag:query on collections a* that match *b or collections c, and among them collections d.',
      {
        principals: { ...box.principals, without_roles: ['auditor'] },
        permissions: ['rag:query'],
        regions: [
          {
            kind: 'collections',
            each: [
              { ...set, also: ['*b'] },
              { ...set, patterns: ['c'] },
            ],
            some: [[{ ...set, patterns: ['d'] }]],
            unnamed: false,
          },
        ],
      },
    ],
    [
      'analyst may no longer chat:write without a resource, from outside 10.20.0.0/16 or an unknown address.',
      { resources: {}, except: {}, addresses: [...networksOutside(['10.20.0.0/16']), 'missing'] },
    ],
  ])('%s', (sentence, change) => {
    const said = boxPieces({ ...box, ...change }, 'denied').map(({ text }) => text);
    expect(said.join('')).toBe(sentence);
  });
});
