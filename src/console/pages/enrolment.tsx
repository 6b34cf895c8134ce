/**
 * Shows the dialogs that confirm or deny a device by the code that the device shows. The device's claims are shown
 * before.
 */
import { useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { RequestError, request } from '../api/request.ts';
import { isAdmin } from '../shell/facts.tsx';
import { age } from '../ui/amounts.ts';
import { Dialog, FormDialog, TextField } from '../ui/dialogs.tsx';
import { ClientLink, Facts } from '../ui/page.tsx';
import { Ago, Until } from '../ui/times.tsx';
import { Button } from '../ui/values.tsx';
import { capitalWord } from '../ui/text-format.ts';

type Found = Extract<gql.LookUpEnrolmentMutation['lookUpEnrolment'], { readonly __typename: 'OpenEnrolment' }>;
type Device = NonNullable<
  Extract<gql.DecideEnrolmentMutation['decideEnrolment'], { readonly __typename: 'EnrolmentDecision' }>['device']
>;

type Step =
  | { readonly kind: 'code' }
  | { readonly kind: 'found'; readonly code: string; readonly found: Found }
  /** `device`: the confirmed device; null if it was denied. */
  | { readonly kind: 'decided'; readonly found: Found; readonly device: Device | null };

const FIRST: Step = { kind: 'code' };

type ConfirmProps = {
  /** The user that is proposed to an administrator as the owner of the device. */
  readonly userId: string;
  /** Called when a device was confirmed. */
  readonly onConfirmed: () => void;
  readonly onClose: () => void;
};

/** Shows the dialogs one after the other. The code exists only in their memory. */
export function ConfirmDevice({ userId, onConfirmed, onClose }: ConfirmProps) {
  const [step, setStep] = useState(FIRST);
  const [owner, setOwner] = useState(userId);
  const again = (): void => setStep(FIRST);
  switch (step.kind) {
    case 'code':
      return <CodeDialog onFound={(code, found) => setStep({ kind: 'found', code, found })} onClose={onClose} />;
    case 'found': {
      const onDecided = (device: Device | null): void => {
        // Several devices are often enrolled for one user, so this user is proposed for the next one.
        if (device) setOwner(device.userId);
        setStep({ kind: 'decided', found: step.found, device });
        if (device) onConfirmed();
      };
      return <DecisionDialog {...step} owner={owner} onDecided={onDecided} onBack={again} onClose={onClose} />;
    }
    case 'decided':
      return <DecidedDialog {...step} onNext={again} onClose={onClose} />;
  }
}

type CodeProps = { readonly onFound: (code: string, found: Found) => void; readonly onClose: () => void };

function CodeDialog({ onFound, onClose }: CodeProps) {
  const lookUp = async (values: FormData): Promise<void> => {
    const code = codeIn(String(values.get('code') ?? ''));
    const { lookUpEnrolment } = await request(gql.LookUpEnrolmentDocument, { userCode: code });
    onFound(code, acceptedCode(lookUpEnrolment));
  };
  return (
    <FormDialog
      title="Confirm a device"
      about={<p class="soft">Enter a code only from a screen that you see yourself. You decide in the next step.</p>}
      confirm="Look it up"
      keep="Cancel"
      busyText="Looking…"
      failed="No device can be shown."
      danger={false}
      stays
      act={lookUp}
      onClose={onClose}
    >
      <TextField
        label="Code on the device"
        id="device-code"
        name="code"
        spellcheck={false}
        autofocus
        hint="Eight letters, such as WDJB-MJHT. Small letters, spaces and dashes do not matter."
      />
    </FormDialog>
  );
}

/** Returns a code in the form that the relay compares: in capitals, without spaces, dashes, dots and underscores. */
function codeIn(text: string): string {
  const code = text.replaceAll(/[\s\p{Dash}._]/gu, '').toUpperCase();
  if (/^[A-Z]{8}$/.test(code)) return code;
  throw new RequestError('invalid_argument', NO_CODE);
}

const NO_CODE = 'A code has eight letters, and no digits or vowels.';

type Answer = { readonly __typename: string };
type CodeRefusal = Extract<gql.LookUpEnrolmentMutation['lookUpEnrolment'], { readonly __typename: 'Refusal' }>;
const isRefusal = (answer: Answer): answer is CodeRefusal => answer.__typename === 'Refusal';

/** Returns the answer about a code. If the relay refused the code, throws a RequestError that states what to do. */
function acceptedCode<Done extends Answer>(answer: Done | CodeRefusal): Done {
  if (isRefusal(answer)) throw new RequestError(answer.code, messageOf(answer));
  return answer;
}

function messageOf({ code, message, retryAfterMs }: CodeRefusal): string {
  if (code === 'not_found')
    return 'No device waits with this code. It may be mistyped, or older than ten minutes, or somebody has decided already. Look at the device: when a code has expired, it shows another one.';
  if (code === 'rate_limited')
    return `These were too many wrong codes. The next one is compared in ${age(retryAfterMs ?? 0)}.`;
  return message;
}

// The dialog that shows a device's claims and asks for the decision.

type DecisionProps = {
  readonly code: string;
  readonly found: Found;
  readonly owner: string;
  readonly onDecided: (device: Device | null) => void;
  readonly onBack: () => void;
  readonly onClose: () => void;
};

function DecisionDialog({ code, found, owner, onDecided, onBack, onClose }: DecisionProps) {
  const [userId, setUserId] = useState(owner);
  const [clientId, setClientId] = useState('');
  const decide = async (input: Omit<gql.DecideEnrolmentInput, 'userCode'>): Promise<void> => {
    const { decideEnrolment } = await request(gql.DecideEnrolmentDocument, { input: { ...input, userCode: code } });
    onDecided(acceptedCode(decideEnrolment).device);
  };
  const confirm = async (): Promise<void> => {
    const user = userId.trim();
    if (isAdmin.value && user === '')
      throw new RequestError('invalid_argument', 'Write the user to whom the device shall belong.');
    const named = { userId: isAdmin.value ? user : null, clientId: clientId.trim() || null };
    await decide({ decision: 'CONFIRM', ...named });
  };
  const { name, clientType, actions, network, at, expiresAt } = found;
  return (
    <FormDialog
      title="Is this the device?"
      about={
        // This element has the focus, and no field or button has it, so that a second Enter cannot confirm what nobody
        // has read.
        <div class="claims" role="group" aria-label="What the device says of itself" tabIndex={-1} autofocus>
          <Facts
            rows={[
              ['Name', <b>{name}</b>],
              ['Type', capitalWord(clientType)],
              ['May advertise', <Advertised actions={actions} />],
              ['Asked from', network],
              ['Asked', <Ago at={at} />],
              ['Code expires', <Until at={expiresAt} />],
            ]}
          />
          <p class="soft">The device says this of itself. Nothing of it is proved but its key.</p>
        </div>
      }
      confirm="Confirm"
      keep="Back"
      busyText="Confirming…"
      failed="Nothing was decided."
      danger={false}
      stays
      act={confirm}
      other={{ text: 'Deny', act: () => decide({ decision: 'DENY' }) }}
      onClose={onClose}
      onKeep={onBack}
    >
      {isAdmin.value ? (
        <TextField
          label="For the user"
          id="device-user"
          name="user"
          value={userId}
          onText={setUserId}
          spellcheck={false}
          hint="The device becomes a client of this user. The relay has no list of users: write the exact id."
        />
      ) : (
        <p>The device becomes a client of yours.</p>
      )}
      <TextField
        label="Client id"
        id="device-client"
        name="client"
        value={clientId}
        onText={setClientId}
        spellcheck={false}
        hint="Optional. Left empty, it is made of the name."
      />
    </FormDialog>
  );
}

/** Shows the patterns of the actions that a device may advertise. */
export function Advertised({ actions }: { readonly actions: readonly string[] | null }) {
  return actions === null ? <>any action</> : <>{actions.join(', ')}</>;
}

type DecidedProps = {
  readonly found: Found;
  readonly device: Device | null;
  readonly onNext: () => void;
  readonly onClose: () => void;
};

function DecidedDialog({ found, device, onNext, onClose }: DecidedProps) {
  return (
    <Dialog title={`${found.name} was ${device ? 'confirmed' : 'denied'}`} onClose={onClose}>
      {device ? (
        <p>
          It is the client <ClientLink {...device} /> now. It gets its token within some seconds, and connects by
          itself.
        </p>
      ) : (
        <p>It gets no token, and is told so.</p>
      )}
      <div class="dialog-acts">
        <Button text="Close" onClick={onClose} />
        <Button look="btn-primary" text="Another device…" onClick={onNext} autofocus />
      </div>
    </Dialog>
  );
}
