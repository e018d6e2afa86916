/** A failed call: the error, the missing permission, and the id of the request for support. */

import { Link } from '@tanstack/react-router';
import { ConnectionError, ProblemError, UnexpectedAnswerError } from '../../../client/index.ts';
import { isPassing } from '../api/queries.ts';
import { common } from '../text/en/common.ts';
import { Button } from './button.tsx';
import { Id, Note, Small } from './mark.tsx';

/**
 * Reports whether a file of the console could not be loaded, in the words of Chromium, Firefox, Safari and Vite. The
 * server has only the files of its own version.
 */
export function isMissingFile(error: unknown): boolean {
  return error instanceof Error && MISSING_FILE.test(error.message);
}

const MISSING_FILE =
  /^(?:Failed to fetch dynamically imported module|error loading dynamically imported module|Importing a module script failed|Unable to preload CSS)/;

interface ProblemProps {
  readonly error: unknown;
  /** Reads again what the page shows. */
  readonly onRetry?: () => void;
}

export function Problem({ error, onRetry }: ProblemProps) {
  if (isMissingFile(error)) return <Outdated />;
  const requestId = error instanceof ProblemError ? error.requestId : undefined;
  const retry =
    onRetry === undefined ? undefined : (
      <Button small onPress={onRetry}>
        {common.tryAgain}
      </Button>
    );
  return (
    <Note tone={error instanceof ProblemError && error.status < 500 ? 'deny' : 'care'} action={retry} isLive>
      {onRetry !== undefined && isPassing(error) ? common.unreachable : sentenceOf(error)}
      <WayOn error={error} />
      {requestId === undefined ? null : (
        <Small>
          {common.requestId} <Id value={requestId} />
        </Small>
      )}
    </Note>
  );
}

/** The user reloads, because a reload by itself could repeat without end and would lose unsaved work. */
function Outdated() {
  return (
    <Note
      tone="care"
      action={
        <Button small onPress={() => location.reload()}>
          {common.reload}
        </Button>
      }
      isLive
    >
      {common.outdated}
    </Note>
  );
}

/** Who can help where the caller may not do something, and where to see why. */
function WayOn({ error }: { readonly error: unknown }) {
  if (!(error instanceof ProblemError)) return null;
  const { code, policy } = error;
  switch (code) {
    case 'insufficient_permission':
      return (
        <Small>
          {common.whoGives} <Link to="/explain">{common.explainAccess}</Link>
        </Small>
      );
    case 'denied_by_policy':
      return (
        <Small>
          {common.whoChangesPolicies}{' '}
          {policy === undefined ? null : (
            <Link to="/policies/$name" params={{ name: policy }}>
              {policy}
            </Link>
          )}
        </Small>
      );
    default:
      return null;
  }
}

/** One sentence for any error of a call. */
export function sentenceOf(error: unknown): string {
  if (error instanceof ProblemError && error.detail !== '') return error.detail;
  if (error instanceof ProblemError && error.code !== 'unknown') return error.title;
  // Without a problem document, a proxy answers in place of Postern. In HTTP/2 its answer has not even a title.
  if (error instanceof ConnectionError || isPassing(error)) return common.noAnswer;
  if (error instanceof ProblemError) return common.unexpected;
  return error instanceof UnexpectedAnswerError ? common.unexpected : common.failed;
}

/** The API's error about one member of the form, such as `/email`. */
export function fieldError(error: unknown, pointer: string): string | undefined {
  if (!(error instanceof ProblemError)) return undefined;
  return error.errors.find(({ path }) => path === pointer || path.startsWith(`${pointer}/`))?.message;
}

/** Reports whether the server refused the form because another resource has the name, the address or the id. */
export function isTaken(error: unknown): boolean {
  return error instanceof ProblemError && error.code === 'already_exists';
}
