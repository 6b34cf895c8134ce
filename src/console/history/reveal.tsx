/**
 * Shows one payload after the user has asked for it. The payload is kept only while the dialog is open, and never
 * across navigation.
 */
import { useEffect, useState } from 'preact/hooks';
import { RevealMessageDocument, RevealPayloadDocument, RevealResultDocument } from '../../generated/console.ts';
import type { RevealPayloadInput } from '../../generated/console.ts';
import { errorOf, RequestError, throwRefusal } from '../api/errors.ts';
import { send } from '../api/request.ts';
import { textAt } from '../api/text-at.ts';
import { isAdmin } from '../shell/facts.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icon.tsx';
import { ActError } from '../ui/notice.tsx';
import { Payload } from '../ui/payload.tsx';
import { ReasonDialog } from '../ui/reason-dialog.tsx';
import { capitalWord } from '../ui/words.ts';
import type { HistoryRow } from './types.ts';

type ResultOf = {
  readonly userId: string;
  readonly clientId: string;
  readonly commandId: string;
  readonly action: string;
};

export function MessageReveal({ row, onClose }: { readonly row: HistoryRow; readonly onClose: () => void }) {
  const own = async (): Promise<string | null> => {
    const { data, text } = await send(RevealMessageDocument, { id: row.id });
    const state = data.node && 'payloadState' in data.node ? data.node.payloadState : null;
    if (state !== 'INCLUDED' && state !== 'SPILLED_INCLUDED')
      throw new RequestError('not_found', 'The payload is no longer kept.');
    return textAt(text, ['data', 'node', 'payload']);
  };
  const subject = { subject: 'MESSAGE', userId: row.userId, messageId: row.id } as const;
  return <Reveal title={`Payload of the ${capitalWord(row.kind).toLowerCase()}`} {...{ subject, own, onClose }} />;
}

type ResultProps = { readonly call: ResultOf; readonly isExpired: boolean };

/** Shows the button that reveals the result of a call, while the result is retained. */
export function ResultReveal({ call, isExpired }: ResultProps) {
  const [open, setOpen] = useState(false);
  const { userId, clientId, commandId } = call;
  const own = async (): Promise<string | null> => {
    const { text } = await send(RevealResultDocument, { userId, clientId, commandId });
    return textAt(text, ['data', 'command', 'result']);
  };
  const subject = { subject: 'COMMAND_RESULT', userId, clientId, commandId } as const;
  return (
    <div class="after-table">
      {isExpired ? (
        <p class="soft">Its result is no longer retained.</p>
      ) : (
        <button class="btn btn-s" type="button" onClick={() => setOpen(true)}>
          <Icon name="eye" />
          Reveal the result…
        </button>
      )}
      {open && <Reveal title={`Result of ${call.action}`} {...{ subject, own }} onClose={() => setOpen(false)} />}
    </div>
  );
}

type RevealProps = {
  readonly title: string;
  readonly subject: Omit<RevealPayloadInput, 'reason'>;
  /** Reads a payload that belongs to the viewer, who need not give a reason. */
  readonly own: () => Promise<string | null>;
  readonly onClose: () => void;
};

/**
 * Shows a payload. An administrator must first give a reason. The reason is written to the audit log before anything is
 * shown.
 */
function Reveal({ title, subject, own, onClose }: RevealProps) {
  const [read, setRead] = useState<(() => Promise<string | null>) | null>(() => (isAdmin.value ? null : own));
  if (read !== null) return <Revealed title={title} read={read} onClose={onClose} />;
  const reveal = async (reason: string | null): Promise<void> => {
    const { data, text } = await send(RevealPayloadDocument, { input: { ...subject, reason: reason ?? '' } });
    if (data.revealPayload.__typename === 'Refusal') throwRefusal(data.revealPayload);
    const shown = textAt(text, ['data', 'revealPayload', 'value']);
    setRead(() => async () => shown);
  };
  return (
    <ReasonDialog
      title={title}
      hint="8 to 256 characters. The audit log will say who read it, when and why."
      bounds={{ min: 8, max: 256 }}
      confirm="Reveal"
      keep="Keep it hidden"
      danger={false}
      failed="It was not revealed."
      act={reveal}
      onClose={onClose}
      stays
    >
      <p class="soft">What is revealed is shown in this dialog only, and goes when it is closed.</p>
    </ReasonDialog>
  );
}

type RevealedProps = {
  readonly title: string;
  readonly read: () => Promise<string | null>;
  readonly onClose: () => void;
};

function Revealed({ title, read, onClose }: RevealedProps) {
  const [text, setText] = useState<string | null>(null);
  const [error, setError] = useState<RequestError | null>(null);
  useEffect(() => {
    read().then(
      (found) => setText(found ?? 'null'),
      (cause: unknown) => setError(errorOf(cause)),
    );
  }, []);
  return (
    <Dialog title={title} onClose={onClose} class="dialog dialog-wide">
      {error && (
        <ActError title="It was not revealed." code={error.code}>
          {error.message}
        </ActError>
      )}
      {text !== null && <Payload text={text} what={title.toLowerCase()} />}
      <div class="dialog-acts">
        <button class="btn" type="button" onClick={onClose}>
          Hide
        </button>
      </div>
    </Dialog>
  );
}
