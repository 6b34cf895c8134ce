/** Shows the dialog that asks for confirmation before it closes the link of a client. */
import { DisconnectClientDocument } from '../../generated/console.ts';
import { throwRefusal } from '../api/errors.ts';
import { request } from '../api/request.ts';
import { ReasonDialog } from '../ui/reason-dialog.tsx';
import type { ClientDetails } from './types.ts';

type DisconnectProps = { readonly client: ClientDetails; readonly onClose: () => void; readonly onDone: () => void };

export function DisconnectDialog({ client, onClose, onDone }: DisconnectProps) {
  const { userId, clientId, inFlight } = client;
  const disconnect = async (reason: string | null): Promise<void> => {
    const { disconnectClient: answer } = await request(DisconnectClientDocument, { userId, clientId, reason });
    if (answer.__typename === 'Refusal') throwRefusal(answer);
    onDone();
  };
  return (
    <ReasonDialog
      title={`Disconnect ${clientId}`}
      hint="For the log and the client. At most 256 characters."
      confirm={`Disconnect ${clientId}`}
      keep="Keep it"
      failed="It was not disconnected."
      act={disconnect}
      onClose={onClose}
    >
      <p class="soft">
        The relay closes its link.{' '}
        {inFlight > 0 ? `Of its ${inFlight} calls in flight, none is cancelled by this. ` : ''}
        The client may connect again at once; to keep it out, revoke its token.
      </p>
    </ReasonDialog>
  );
}
