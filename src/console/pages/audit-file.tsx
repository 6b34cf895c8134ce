/** Shows the button that saves the audit events of a filter as a file. */
import { useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { errorOf, request, type RequestError } from '../api/request.ts';
import { whole } from '../ui/amounts.ts';
import { ActError } from '../ui/notices.tsx';
import { Button } from '../ui/values.tsx';
import { plural } from '../ui/text-format.ts';

/** The size of one page, and the maximum number of audit events in a file. */
const PART = 500;
const SAVED_MAX = 10_000;

type Saving = { readonly isBusy: boolean; readonly said: string | null; readonly error: RequestError | null };
const IDLE: Saving = { isBusy: false, said: null, error: null };

export function SaveButton({ filter }: { readonly filter: gql.AuditFilter }) {
  const [{ isBusy, said, error }, setState] = useState(IDLE);
  const save = (): void => {
    if (isBusy) return;
    setState({ ...IDLE, isBusy: true });
    readActs(filter).then(
      ({ rows, isCut }) => {
        saveFile(`audit-${new Date().toISOString().slice(0, 10)}.jsonl`, rows.map(lineOf).join(''));
        const cut = isCut ? `, the newest: a file holds at most ${whole(SAVED_MAX)}` : '';
        setState({ ...IDLE, said: `${plural(rows.length, 'event')} saved${cut}.` });
      },
      (cause: unknown) => setState({ ...IDLE, error: errorOf(cause) }),
    );
  };
  return (
    <>
      <span class="sr" role="status">
        {said}
      </span>
      {said !== null && (
        <span class="quiet" aria-hidden="true">
          {said}
        </span>
      )}
      <Button text={isBusy ? 'Saving…' : 'Save as JSON lines'} onClick={save} aria-disabled={isBusy} />
      <ActError title="It was not saved." error={error} />
    </>
  );
}

type Acts = { readonly rows: readonly gql.AuditRowFragment[]; readonly isCut: boolean };

/** Reads the audit events of a filter, newest first, at most SAVED_MAX. Rejects with RequestError. */
async function readActs(filter: gql.AuditFilter): Promise<Acts> {
  const rows: gql.AuditRowFragment[] = [];
  let after: string | null = null;
  do {
    const { auditEvents }: gql.AuditQuery = await request(gql.AuditDocument, { filter, first: PART, after });
    rows.push(...auditEvents.nodes);
    after = auditEvents.pageInfo.hasNextPage ? auditEvents.pageInfo.endCursor : null;
  } while (after !== null && rows.length < SAVED_MAX);
  return { rows: rows.slice(0, SAVED_MAX), isCut: after !== null };
}

/** Writes an audit event on one line, without members that are null. */
function lineOf({ subject, ...row }: gql.AuditRowFragment): string {
  const ids = Object.fromEntries(Object.entries(subject).filter(([, id]) => id !== null));
  return `${JSON.stringify({ ...row, subject: ids })}\n`;
}

function saveFile(name: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/jsonl' }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
