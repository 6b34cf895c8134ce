import type { CancelReceipt, Invocation } from '../core/core.ts';

/** What the access log says of a request besides where it went. It is filled in while the request is handled. */
export type RequestNotes = {
  /** Of the first command that the request invoked, awaited or cancelled. */
  commandId: string | null;
  /** Null while that command is live. */
  outcome: string | null;
  /** Why the command ended so, or why the request was refused. */
  code: string | null;
};

export function emptyNotes(): RequestNotes {
  return { commandId: null, outcome: null, code: null };
}

/** Notes what became of a command, and gives it back. A request with several is known by its first. */
export function noteCommand<T extends Invocation | CancelReceipt>(notes: RequestNotes | undefined, answer: T): T {
  if (!notes || notes.commandId !== null || notes.code !== null) return answer;
  if ('state' in answer) {
    const { commandId, outcome, command } = answer;
    Object.assign(notes, { commandId, outcome, code: command?.error?.code ?? null });
  } else if ('command' in answer) {
    const { commandId, outcome, error } = answer.command;
    Object.assign(notes, { commandId, outcome, code: error?.code ?? null });
  } else if (answer.kind === 'ended') {
    const { outcome, errorCode } = answer.mark;
    Object.assign(notes, { commandId: answer.key.commandId, outcome, code: errorCode });
  } else Object.assign(notes, { commandId: answer.commandId, code: answer.code });
  return answer;
}
