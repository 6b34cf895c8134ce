/** Shows the dialog that asks for confirmation before it cancels a call. */
import { CancelCallDocument, type CancelState } from '../../generated/console.ts';
import { throwRefusal } from '../api/errors.ts';
import { request } from '../api/request.ts';
import { ReasonDialog } from '../ui/reason-dialog.tsx';
import type { CallDetails } from './types.ts';

/** The sentence for each result of a cancellation. */
export const CANCEL_WORDS: Readonly<Record<CancelState, string>> = {
  CANCELLED: 'Cancelled: it was never written to the client.',
  REQUESTED: 'The client was asked to stop it. It may have run already.',
  TOO_LATE: 'Too late to cancel: it had ended already.',
};

type CancelProps = {
  readonly call: CallDetails;
  readonly onClose: () => void;
  readonly onDone: (state: CancelState) => void;
};

export function CancelDialog({ call, onClose, onDone }: CancelProps) {
  const { userId, clientId, commandId, action } = call;
  const cancel = async (reason: string | null): Promise<void> => {
    const { cancelCommand: answer } = await request(CancelCallDocument, {
      input: { userId, clientId, commandId, reason },
    });
    if (answer.__typename === 'Refusal') throwRefusal(answer);
    onDone(answer.state);
  };
  return (
    <ReasonDialog
      title={`Cancel ${action}`}
      hint="For the record and the client. At most 256 characters."
      confirm="Cancel the call"
      keep="Keep it"
      failed="It was not cancelled."
      act={cancel}
      onClose={onClose}
    >
      <p class="soft">
        If nothing was written to the client, it never will be. Otherwise the client is asked to stop, and it may have
        run already.
      </p>
    </ReasonDialog>
  );
}
