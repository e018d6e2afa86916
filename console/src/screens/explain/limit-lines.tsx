/** The limits of steps 15 to 17, each with its state and what the request takes of it. */

import { Link } from '@tanstack/react-router';
import type { Explanation } from '../../../../client/index.ts';
import { explain as text } from '../../text/en/explain.ts';
import { count } from '../../ui/number.ts';
import { Looked } from '../../ui/passage.tsx';
import { Moment } from '../../ui/time.tsx';
import type { Subject } from './subject.ts';

type Limit = Explanation['limits'][number];

interface LimitLinesProps {
  /** The step whose limits are shown. */
  readonly line: number;
  readonly limits: Explanation['limits'];
  readonly subject: Subject | undefined;
}

export function LimitLines({ line, limits, subject }: LimitLinesProps) {
  return limits
    .filter((limit) => limit.line === line)
    .map((limit) => (
      <Looked
        key={`${limit.of} ${limit.name}`}
        holds={limit.applies ? !limit.exceeded : undefined}
        name={<LimitName limit={limit} subject={subject} />}
      >
        <State limit={limit} />
      </Looked>
    ));
}

function LimitName({
  limit: { name, of, models },
  subject,
}: {
  readonly limit: Limit;
  readonly subject: Subject | undefined;
}) {
  const plain = text.limitNames[name];
  const words = models === undefined ? plain : text.forModels(plain, models.join(', '));
  if (of === 'api_key' && subject?.type === 'api_key') {
    return (
      <Link to="/keys" search={{ open: subject.id }}>
        {text.ofKey(words)}
      </Link>
    );
  }
  if (of === 'user' && subject?.type === 'user') {
    return (
      <Link to="/users/$id" params={{ id: subject.id }}>
        {words}
      </Link>
    );
  }
  return <Link to="/usage">{words}</Link>;
}

function State({
  limit: { applies, limit, used, remaining, reserved, needed, resets_at: resetsAt },
}: {
  readonly limit: Limit;
}) {
  const parts = [
    limit === null ? text.noLimit : used === null ? text.atMost(count(limit)) : text.usedOf(count(used), count(limit)),
    limit === null || used === null || remaining === null ? '' : text.left(count(remaining)),
    limit === null || reserved === null || reserved === 0 ? '' : text.reserved(count(reserved)),
    !applies ? (limit === null ? '' : text.notCounted) : needed === null ? '' : text.takes(count(needed)),
  ];
  return (
    <>
      {parts.filter((part) => part !== '').join(', ')}
      {limit === null || resetsAt === null ? null : (
        <>
          , {text.resets} <Moment time={resetsAt} />
        </>
      )}
    </>
  );
}
