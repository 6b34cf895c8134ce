/** Shows which tokens are revoked, and the dialogs that revoke tokens and show what a revocation has ended. */
import { useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { RequestError, accepted, request } from '../api/request.ts';
import { pagePath } from '../base.ts';
import { tokenIdOf } from '../session.ts';
import { isAdmin, viewer } from '../shell/facts.tsx';
import { plural, nameClass, personText } from '../ui/text-format.ts';
import { CloseAct, Dialog, FormDialog, Select, TextField } from '../ui/dialogs.tsx';
import { List, pageOf } from '../ui/list.tsx';
import { Empty, Notice } from '../ui/notices.tsx';
import { ActButton, AsOf, Facts, Nil, PageHead } from '../ui/page.tsx';
import { column, nameColumn, timeColumn, type Column } from '../ui/table.tsx';
import { readTime } from '../ui/time-input.ts';
import { DayTime, When } from '../ui/times.tsx';
import { useUrlState } from '../ui/url-state.ts';

export function RevocationsPage() {
  const [isAsking, setAsking] = useState(false);
  const [receipt, setReceipt] = useState<Receipt | null>(null);
  const { values } = useUrlState();
  const query = useQuery(gql.RevocationsDocument, pageOf(values), { skip: !isAdmin.value });
  const close = (): void => {
    setAsking(false);
    setReceipt(null);
  };
  const done = (given: Receipt): void => {
    setReceipt(given);
    if (isAdmin.value) query.again();
  };
  return (
    <>
      <PageHead
        title="Revocations"
        acts={[
          isAdmin.value && <AsOf queries={[query]} />,
          <ActButton class="btn-stop" onClick={() => setAsking(true)}>
            Revoke tokens…
          </ActButton>,
        ]}
      >
        Tokens that no node accepts any more, because they leaked or their holder is to be kept out. To remove a device,
        use its row of <a href={pagePath('devices')}>Devices</a>.
      </PageHead>
      {isAdmin.value ? (
        <List
          one="revocation"
          many="revocations"
          query={query}
          list={query.data?.revocations}
          about={`${plural(query.data?.revocations.nodes.length ?? 0, 'revocation')} on this page, newest first.`}
          empty={
            <Empty title="No token is revoked" mark="all">
              When a token has leaked or a device is lost, revoke its tokens here: links and event streams end at once,
              and no new secret is needed.
            </Empty>
          }
          caption="Revocations"
          columns={COLUMNS}
          keyOf={({ revocationId }) => revocationId}
        />
      ) : (
        <Empty title="You may revoke tokens of your own" mark="key">
          Administrators alone see the list. When a token of yours has leaked, revoke it here: its links and event
          streams end at once.
        </Empty>
      )}
      {isAsking && receipt === null && <RevokeDialog onDone={done} onClose={close} />}
      {receipt !== null && <Revoked title="The tokens are revoked" receipt={receipt} onClose={close} />}
    </>
  );
}

type Row = gql.RevocationRowFragment;

const COLUMNS: readonly Column<Row>[] = [
  timeColumn('When', 'nw c-2 c-end', ({ at }) => <When at={at} />),
  nameColumn('Revoked', 'c-1', (row) => <Covered {...row} />),
  { ...timeColumn<Row>('Issued before', 'c-5', (row) => <IssuedBefore {...row} />), label: 'issued before' },
  column('By', 'c-3', ({ who }) => <span class={nameClass(who)}>{personText(who)}</span>),
  column('Reason', 'why c-6 c-wide', ({ reason }) => reason),
  timeColumn('Kept until', 'c-off', ({ expiresAt }) => <DayTime at={expiresAt} />),
];

function IssuedBefore({ issuedBefore }: Row) {
  return issuedBefore === null ? <Nil why="whenever it was issued" /> : <DayTime at={issuedBefore} />;
}

function Covered({ userId, clientId, tokenId }: Row) {
  const of = userId === null ? '' : ` of ${userId}`;
  const text =
    clientId !== null
      ? `Links of ${userId} / ${clientId}`
      : tokenId !== null
        ? `Token ${tokenId}${of}`
        : userId === null
          ? 'All tokens'
          : `Tokens of ${userId}`;
  return <span class={nameClass(text)}>{text}</span>;
}

// The dialog that asks which tokens to revoke, and the one that shows what was ended.

type Receipt = gql.RevocationReceiptPartFragment;

/** What a person revokes. `before`: all tokens that were issued before a given time. */
type Kind = 'user' | 'client' | 'token' | 'before';

type Choice = { readonly value: Kind; readonly text: string };

const ONE: readonly Choice[] = [
  { value: 'client', text: 'those with which a client is linked' },
  { value: 'token', text: 'one token' },
];
const CHOICES_OF_ADMIN: readonly Choice[] = [
  { value: 'user', text: 'all of a user' },
  ...ONE,
  { value: 'before', text: 'all of everybody that were issued before a time' },
];
const CHOICES_OF_USER: readonly Choice[] = [{ value: 'user', text: 'all of mine' }, ...ONE];

type RevokeProps = { readonly onDone: (receipt: Receipt) => void; readonly onClose: () => void };

function RevokeDialog({ onDone, onClose }: RevokeProps) {
  const [kind, setKind] = useState<Kind>('user');
  const choices = isAdmin.value ? CHOICES_OF_ADMIN : CHOICES_OF_USER;
  const act = async (values: FormData): Promise<void> => {
    const input = inputOf(kind, (name) => String(values.get(name) ?? '').trim());
    onDone(accepted((await request(gql.RevokeTokensDocument, { input })).revoke));
  };
  return (
    <FormDialog
      title="Revoke tokens"
      about={
        <p class="soft">
          The relay refuses them from now on, and ends their links and event streams. This cannot be taken back.
        </p>
      }
      confirm="Revoke them"
      keep="Not now"
      busyText="Revoking…"
      failed="They were not revoked."
      stays
      act={act}
      onClose={onClose}
    >
      <div class="field">
        <label for="revoke-what">Which tokens</label>
        <Select
          id="revoke-what"
          value={kind}
          choices={choices}
          onChoose={(value) => setKind(choices.find((choice) => choice.value === value)?.value ?? 'user')}
        />
      </div>
      <p role="status">{whatOf(kind)}</p>
      {isAdmin.value && (kind === 'user' || kind === 'client') && (
        <TextField label="User" id="revoke-user" name="user" spellcheck={false} />
      )}
      {kind === 'client' && <TextField label="Client id" id="revoke-client" name="client" spellcheck={false} />}
      {kind === 'token' && (
        <TextField
          label="Token id"
          id="revoke-token"
          name="token"
          spellcheck={false}
          hint="The member jti of the token. Of a token that you paste whole, only the id is sent."
        />
      )}
      {kind === 'before' && (
        <TextField label="Issued before, in UTC" id="revoke-before" name="before" hint="Such as 2026-11-21T14:31." />
      )}
      <TextField
        label="Reason"
        id="revoke-reason"
        name="reason"
        maxlength={256}
        hint="The list and the audit log have it. At most 256 characters."
      />
    </FormDialog>
  );
}

function whatOf(kind: Kind): string {
  switch (kind) {
    case 'user':
      return isAdmin.value
        ? 'All tokens of the user that were issued until now, those of its devices and of an administrator of this name too. What the user has queued is cancelled. It can sign in again; its devices must be enrolled again.'
        : 'All your tokens that were issued until now, those of your devices and of this page too. What you have queued is cancelled. You can sign in again; your devices must be enrolled again.';
    case 'client':
      return 'The links of this client, whatever their token. A device must be enrolled again; another client can connect with a new token.';
    case 'token':
      return 'One token, by its id. Other tokens of its user stay valid.';
    case 'before':
      return 'All tokens of everybody that were issued before this time, or do not say when. Everybody must sign in again, and each device must be enrolled again. Administrators’ tokens of the configuration stay valid.';
  }
}

/** Returns the revocation that the fields describe. Throws a RequestError if a field is missing. */
function inputOf(kind: Kind, field: (name: string) => string): gql.RevokeInput {
  const given = (name: string, what: string): string => field(name) || refuse(`Write ${what}.`);
  const userId = isAdmin.value ? (): string => given('user', 'the user') : (): string => viewer.value?.userId ?? '';
  const target = (): Omit<gql.RevokeInput, 'reason'> => {
    switch (kind) {
      case 'user':
        return { userId: userId() };
      case 'client':
        return { userId: userId(), clientId: given('client', 'the client id') };
      case 'token':
        return { tokenId: idOfToken(given('token', 'the token id')) };
      case 'before':
        return { issuedBefore: timeIn(given('before', 'the time')) };
    }
  };
  return { ...target(), reason: given('reason', 'why') };
}

const refuse = (message: string): never => {
  throw new RequestError('invalid_argument', message);
};

/**
 * Returns the id of the token if a whole token was pasted, so that the token itself is not sent. Otherwise the text is
 * already an id and is returned.
 */
function idOfToken(text: string): string {
  if (!/^[\w-]+\.[\w-]+\.[\w-]*$/.test(text)) return text;
  return tokenIdOf(text) ?? refuse('This token has no id. Revoke the tokens of its user.');
}

function timeIn(text: string): string {
  const ms = readTime(text, Date.now());
  return ms === null ? refuse('Write a time such as 2026-11-21T14:31.') : new Date(ms).toISOString();
}

type RevokedProps = { readonly title: string; readonly receipt: Receipt; readonly onClose: () => void };

/** Shows what a revocation has ended, and which nodes were silent. */
export function Revoked({ title, receipt, onClose }: RevokedProps) {
  const { links, sockets, cancelled, nodes, silent } = receipt;
  return (
    <Dialog title={silent.length === 0 ? title : `${title}, but not everywhere yet`} onClose={onClose}>
      {silent.length > 0 && (
        <Notice mark="warn" look="error">
          <b>{silent.join(', ')} did not answer.</b> What is revoked is accepted there until the node reads the store,
          which it does every two seconds while it can.
        </Notice>
      )}
      <Facts
        rows={[
          ['Links closed', links],
          ['Requests and event streams ended', sockets],
          ['Queued calls cancelled', cancelled],
          ['Refused by', nodes.join(', ')],
          silent.length === 0 ? null : ['Silent', silent.join(', ')],
        ]}
      />
      <CloseAct onClose={onClose} />
    </Dialog>
  );
}
