/**
 * The memory of a gate that has the budgets of all tenants: 1,000 budgets each, most of which select one key, and the
 * time to find those of one caller.
 *
 * node --expose-gc bench/micro/budget-memory.ts [tenants] [budgets of each]
 */

import { type BudgetIndex, budgetsOf, compileBudgets } from '../../src/decision/budgets.ts';
import { parseId } from '../../src/domain/ids.ts';
import { BUDGET_PERIODS, BUDGET_UNITS, type BudgetRecord } from '../../src/domain/records.ts';
import { given } from './memory-source.ts';

const TENANTS = Number(process.argv[2] ?? 1000);
const EACH = Number(process.argv[3] ?? 1000);
const LOOK_UPS = 1_000_000;

const collect = globalThis.gc;
if (collect === undefined) throw new Error('run with --expose-gc');
const heap = (): number => {
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

/** As rows arrive: nothing shared between two records. */
const fresh = (text: string): string => Buffer.from(text).toString();
const keyOf = (index: number) => given(parseId('key', fresh(`key_${index.toString(16).padStart(26, '0')}`)));

/** One budget in ten is the tenant's, one in ten selects metadata, and the others select a key. */
function budget(tenant: number, index: number): BudgetRecord {
  const number = tenant * EACH + index;
  return {
    id: given(parseId('bud', fresh(`bud_${number.toString(16).padStart(26, '0')}`))),
    name: fresh(`budget-${index}`),
    unit: BUDGET_UNITS[index % BUDGET_UNITS.length] ?? 'tokens',
    limit: 1_000_000_000 + index,
    period: BUDGET_PERIODS[index % BUDGET_PERIODS.length] ?? 'month',
    timezone: undefined,
    appliesTo:
      index % 100 === 0
        ? { tenant: true }
        : index % 10 === 1
          ? { metadata: { [fresh('team')]: fresh(`team-${index}`) } }
          : { keys: [keyOf(number)] },
    per: 'all',
    models: index % 4 === 0 ? [fresh('llama-*')] : undefined,
    action: 'block',
    epoch: 0,
  };
}

const before = heap();
const began = process.cpuUsage();
const indexes: BudgetIndex[] = Array.from({ length: TENANTS }, (_, tenant) =>
  compileBudgets(Array.from({ length: EACH }, (_, index) => budget(tenant, index))),
);
const spent = process.cpuUsage(began);
const used = heap() - before;
console.log(
  `${TENANTS * EACH} budgets of ${TENANTS} tenants: ${(used / 1_048_576).toFixed(0)} MB, ${(used / TENANTS / EACH).toFixed(0)} bytes each; ` +
    `made in ${((spent.user + spent.system) / 1000 / TENANTS).toFixed(2)} ms per tenant`,
);

const caller = { keyId: keyOf(7), userId: undefined, roles: [], metadata: { team: 'team-11' } };
const from = process.cpuUsage();
let found = 0;
for (let i = 0; i < LOOK_UPS / EACH; i++) found += budgetsOf(given(indexes[i % TENANTS]), caller).length;
const { user } = process.cpuUsage(from);
console.log(`budgets of one caller: ${((user * EACH) / LOOK_UPS).toFixed(2)} us (${found})`);
