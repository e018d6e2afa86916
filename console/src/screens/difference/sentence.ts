/** A box of requests as one sentence. */

import type { DifferenceBox } from '../../../../client/index.ts';
import { RESOURCE_KINDS, type ResourceKind } from '../../api/permissions.ts';
import { difference as text } from '../../text/en/difference.ts';
import { networksOutside } from '../policy/networks.ts';
import { list, type Piece, plain, strong } from '../policy/pieces.ts';

/** An address that the server does not know. */
const MISSING = 'missing';

/** The way in which the requests of a box change. */
export type BoxChange = 'denied' | 'allowed';

/** `analyst may no longer chat:write on models llama-*, except llama-guard, from 10.0.0.0/8, Mon-Fri 18:00-20:00` */
export function boxPieces(box: DifferenceBox, change: BoxChange): readonly Piece[] {
  return [
    ...principalPieces(box),
    { kind: 'effect', text: ` ${text.may[change]} ` },
    ...list(box.permissions),
    ...(box.self ? [plain(` ${text.onThemselves}`)] : []),
    ...resourcePieces(box),
    ...addressPieces(box),
    ...clockPieces(box),
    plain('.'),
  ];
}

function principalPieces({ principals }: DifferenceBox): readonly Piece[] {
  const { roles, without_roles: without, exact, users, keys } = principals;
  const counted = strong(text.usersAndKeys(users, keys));
  if (!exact) return roles.length === 0 ? [counted] : [counted, plain(` ${text.amongHolders} `), ...list(roles)];
  return [
    ...(roles.length === 0 ? [strong(text.everyone)] : list(roles)),
    ...(without.length === 0 ? [] : [plain(` ${text.without} `), ...list(without)]),
  ];
}

function resourcePieces(box: DifferenceBox): readonly Piece[] {
  const { regions, resources, except, witness } = box;
  if (regions !== undefined) return regions.flatMap(regionPieces);
  // Requests of the management API name none.
  if (Object.keys(resources).length === 0) return witness.path === null ? [] : [plain(` ${text.noResource}`)];
  return RESOURCE_KINDS.flatMap((kind) => {
    const patterns = resources[kind];
    return patterns === undefined
      ? []
      : [plain(` ${text.on} `), ...setPieces(kind, { patterns, except: except[kind] ?? [], also: [] })];
  });
}

type Region = NonNullable<DifferenceBox['regions']>[number];
type NameSet = Region['each'][number];

function regionPieces({ kind, each, some, unnamed }: Region): readonly Piece[] {
  const alternatives = [...each.map((set) => setPieces(kind, set)), ...(unnamed ? [[plain(text.unnamed[kind])]] : [])];
  return [
    plain(` ${text.on} `),
    ...joined(alternatives),
    ...some.flatMap((sets) => [plain(`, ${text.oneOfThem} `), ...joined(sets.map((set) => setPieces(kind, set)))]),
  ];
}

function joined(alternatives: readonly (readonly Piece[])[]): readonly Piece[] {
  return alternatives.flatMap((pieces, index) => (index === 0 ? pieces : [plain(` ${text.or} `), ...pieces]));
}

function setPieces(kind: ResourceKind, { patterns, also, except }: NameSet): readonly Piece[] {
  return [
    ...(patterns.includes('*')
      ? [plain(text.any[kind])]
      : patterns.length === 0
        ? [plain(text.unnamed[kind])]
        : [plain(`${text.kinds[kind]} `), ...list(patterns)]),
    ...(also.length === 0 ? [] : [plain(` ${text.also} `), ...list(also)]),
    ...(except.length === 0 ? [] : [plain(`, ${text.except} `), ...list(except)]),
  ];
}

/** All addresses but a few are many networks, so the few are named. */
function addressPieces({ addresses }: DifferenceBox): readonly Piece[] {
  if (addresses === undefined) return [];
  const networks = addresses.filter((one) => one !== MISSING);
  const others = networksOutside(networks);
  const isInverse = others.length < networks.length;
  const named = [
    ...(networks.length === 0 ? [] : isInverse ? namesOutside(others) : list(networks)),
    ...(networks.length > 0 && networks.length < addresses.length ? [plain(` ${text.or} `)] : []),
    ...(networks.length < addresses.length ? [plain(text.unknownAddress)] : []),
  ];
  return [plain(`, ${text.from} `), ...named];
}

function namesOutside(networks: readonly string[]): readonly Piece[] {
  return networks.length === 0 ? [plain(text.anyKnownAddress)] : [plain(`${text.outside} `), ...list(networks)];
}

/** The hours of each clock; the request lies in all of them. */
export function clocksOf({ week, timezone, clocks }: DifferenceBox): NonNullable<DifferenceBox['clocks']> {
  if (clocks !== undefined) return clocks;
  return week === undefined || timezone === undefined ? [] : [{ week, timezone }];
}

function clockPieces(box: DifferenceBox): readonly Piece[] {
  return clocksOf(box).flatMap(({ week, timezone }, index) => [
    plain(index === 0 ? ', ' : ` ${text.alsoDuring} `),
    ...list(week),
    plain(` ${timezone}`),
  ]);
}
