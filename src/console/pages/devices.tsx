/** Shows the devices that people have enrolled, with dialogs to confirm, rename and remove devices. */
import { useMemo, useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { useLive } from '../api/live.ts';
import { useQuery } from '../api/query.ts';
import { accepted, request } from '../api/request.ts';
import { clientHref } from '../base.ts';
import { LiveNotice, PauseButton } from '../shell/relay-notices.tsx';
import { isAdmin, isSilent, viewer } from '../shell/facts.tsx';
import { FormDialog, ReasonDialog, TextField } from '../ui/dialogs.tsx';
import type { Filter } from '../ui/filters.tsx';
import { List, pageOf } from '../ui/list.tsx';
import { Empty, Information } from '../ui/notices.tsx';
import { ActButton, AsOf, ClientLink, Nil, PageHead } from '../ui/page.tsx';
import { column, labelled, nameColumn, quietColumn, type Column } from '../ui/table.tsx';
import { Ago } from '../ui/times.tsx';
import { useUrlState } from '../ui/url-state.ts';
import { ConnectionMark, NameLink, StateMark } from '../ui/values.tsx';
import { capitalWord, nameClass, personText, plural } from '../ui/text-format.ts';
import { Advertised, ConfirmDevice } from './enrolment.tsx';
import { Revoked } from './revocations.tsx';

type Row = gql.DeviceRowFragment;

const FILTERS: readonly Filter[] = [{ name: 'user', label: 'User' }];

const keyOf = ({ userId, clientId }: Pick<Row, 'userId' | 'clientId'>): string => `${userId}/${clientId}`;

const COLUMNS: readonly Column<Row>[] = [
  column('Status', 'c-1', (row) => <DeviceState {...row} />),
  nameColumn('Device', 'c-3', (row) => <NameLink href={clientHref(row)} text={row.name} />),
  column('Client', 'c-5 c-wide', (row) => <ClientLink {...row} />),
  labelled('Type', 'nw c-6', ({ clientType }) => capitalWord(clientType)),
  labelled('May advertise', 'c-6', ({ actions }) => <Advertised actions={actions} />),
  labelled('Confirmed', 'c-7 c-wide', (row) => <Confirmed {...row} />),
  labelled('Last token', 'nw c-8', ({ usedAt }) =>
    usedAt === null ? <Nil why="it has got no token yet" /> : <Ago at={usedAt} />,
  ),
];

function Confirmed({ enrolledAt, enrolledBy }: Row) {
  return (
    <span class={nameClass(enrolledBy)}>
      <Ago at={enrolledAt} /> by {personText(enrolledBy)}
    </span>
  );
}

function DeviceState({ revoked, connection }: Row) {
  if (revoked) return <StateMark shape="cancelled">Revoked</StateMark>;
  if (connection === null) return <StateMark shape="down">Not connected</StateMark>;
  return <ConnectionMark status={connection.status} recorded={isSilent(connection.nodeId)} />;
}

/** The operation whose dialog is open. */
type Act =
  | { readonly kind: 'confirm' }
  | { readonly kind: 'rename' | 'remove'; readonly device: Row }
  | { readonly kind: 'removed'; readonly device: Row; readonly receipt: gql.RevocationReceiptPartFragment };

export function DevicesPage() {
  const [act, setAct] = useState<Act | null>(null);
  const { values } = useUrlState();
  const userId = isAdmin.value ? (values['user'] ?? null) : null;
  const query = useQuery(gql.DevicesDocument, { userId, ...pageOf(values) });
  const list = query.data?.devices;
  const columns = useMemo(() => [...COLUMNS, actsColumn(setAct)], []);
  useLive(gql.ClientChangesDocument, {
    variables: { userId },
    skip: !list,
    onData: ({ connectionEvents: { connection, missed } }) => {
      if (list?.nodes.some((row) => keyOf(row) === keyOf(connection))) query.changed();
      return missed;
    },
    onStale: query.again,
  });
  const close = (): void => setAct(null);
  const mayConfirm = isAdmin.value || (viewer.value?.scopes.includes('CONNECT') ?? false);
  const confirm = mayConfirm && (
    <ActButton class="btn-primary" onClick={() => setAct({ kind: 'confirm' })}>
      Confirm a device…
    </ActButton>
  );
  return (
    <>
      <PageHead title="Devices" acts={[<AsOf queries={[query]} />, <PauseButton />, confirm]}>
        Clients that hold a key of their own, which a person has enrolled. They renew their tokens by themselves.
      </PageHead>
      <List
        one="device"
        many="devices"
        query={query}
        list={list}
        filters={isAdmin.value ? FILTERS : []}
        bare="user"
        notices={[
          <LiveNotice />,
          !mayConfirm && <Information>Your token lacks the scope connect, so it can confirm no device.</Information>,
        ]}
        about={`${plural(list?.nodes.length ?? 0, 'device')} on this page, in order of user and client.`}
        empty={
          <Empty title="No device is enrolled">
            A kiosk or another device that calls <code>enrol()</code> of <code>callboard/enrol</code> shows a code.
            Enter it with “Confirm a device…”; the device then connects by itself.
          </Empty>
        }
        caption="Devices by user and client"
        columns={columns}
        keyOf={keyOf}
        hrefOf={clientHref}
        isRecorded={({ connection }) => isSilent(connection?.nodeId ?? null)}
      />
      {act?.kind === 'confirm' && <ConfirmDevice userId={userId ?? ''} onConfirmed={query.again} onClose={close} />}
      {act?.kind === 'rename' && <RenameDialog device={act.device} onDone={query.again} onClose={close} />}
      {act?.kind === 'remove' && (
        <RemoveDialog
          device={act.device}
          onDone={(receipt) => {
            setAct({ ...act, kind: 'removed', receipt });
            query.again();
          }}
          onClose={close}
        />
      )}
      {act?.kind === 'removed' && (
        <Revoked title={`${act.device.name} was removed`} receipt={act.receipt} onClose={close} />
      )}
    </>
  );
}

function actsColumn(onAct: (act: Act) => void): Column<Row> {
  return quietColumn('Acts', 'r c-9 c-wide', (device) => (
    <span class="row-acts row-acts-line">
      <ActButton class="btn-s" label={`Rename ${device.name}…`} onClick={() => onAct({ kind: 'rename', device })}>
        Rename…
      </ActButton>
      <ActButton class="btn-s" label={`Remove ${device.name}…`} onClick={() => onAct({ kind: 'remove', device })}>
        Remove…
      </ActButton>
    </span>
  ));
}

type DeviceProps = { readonly device: Row; readonly onClose: () => void };

function RenameDialog({ device, onDone, onClose }: DeviceProps & { readonly onDone: () => void }) {
  const [name, setName] = useState(device.name);
  const { userId, clientId } = device;
  const rename = async (): Promise<void> => {
    const { renameDevice } = await request(gql.RenameDeviceDocument, { userId, clientId, deviceName: name.trim() });
    accepted(renameDevice);
    onDone();
  };
  return (
    <FormDialog
      title={`Rename ${device.name}`}
      about={
        <p class="soft">
          People see the new name. It stays the client {userId} / {clientId}, so callers and the device notice nothing.
        </p>
      }
      confirm="Rename"
      keep="Keep the name"
      failed="It was not renamed."
      danger={false}
      act={rename}
      onClose={onClose}
    >
      <TextField
        label="Name"
        id="device-name"
        name="name"
        value={name}
        onText={setName}
        maxlength={64}
        autofocus
        hint="Letters, digits, spaces and . _ -"
      />
    </FormDialog>
  );
}

type RemoveProps = DeviceProps & { readonly onDone: (receipt: gql.RevocationReceiptPartFragment) => void };

function RemoveDialog({ device, onDone, onClose }: RemoveProps) {
  const { userId, clientId } = device;
  const remove = async (reason: string | null): Promise<void> =>
    onDone(accepted((await request(gql.RemoveDeviceDocument, { userId, clientId, reason })).removeDevice));
  return (
    <ReasonDialog
      title={`Remove ${device.name}`}
      confirm="Remove it"
      keep="Keep it"
      busyText="Removing…"
      failed="It was not removed."
      hint="Optional. The list of revocations and the audit log have it. At most 256 characters."
      stays
      act={remove}
      onClose={onClose}
    >
      <p class="soft">
        The tokens of the client {userId} / {clientId} are revoked: its link ends at once, and it gets no token any
        more. Calls that wait for it are not cancelled. To use the device again, a person must enrol it again.
      </p>
    </ReasonDialog>
  );
}
