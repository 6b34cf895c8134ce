/** Shows what is known of one client: its link, its instance, and the data that it sent in its hello frame. */
import type { ComponentChildren } from 'preact';
import { nodesHref } from '../ui/links.tsx';
import { FullId, ShortId } from '../ui/id.tsx';
import { Facts, Section } from '../ui/page.tsx';
import { ConnectionMark } from '../ui/status.tsx';
import { Ago, Time } from '../ui/time.tsx';
import { capitalWord, CAUSE, HEARTBEAT } from '../ui/words.ts';
import type { ClientDetails } from './types.ts';

type Part = { readonly client: ClientDetails };

type HeadProps = Part & {
  /** Whether the node of the client's link is silent, so that the state is the last recorded one. */
  readonly isRecorded: boolean;
  /** Whether the relay has forgotten the client since the page was opened. */
  readonly isGone: boolean;
};

/** Shows the state of the link in one sentence. */
export function ClientHead({ client, isRecorded, isGone }: HeadProps) {
  return (
    <div class="case-head">
      <div>
        <p>
          <ConnectionMark status={client.status} recorded={isRecorded || isGone} />
        </p>
        <p>{isGone ? GONE : sentenceOf(client, isRecorded)}</p>
      </div>
      <Facts
        rows={[
          ['Queued', `${client.queued} for this link`],
          ['In flight', `${client.inFlight} sent and not ended`],
          ['Last seen', <Ago at={client.lastSeenAt} />],
        ]}
      />
    </div>
  );
}

const GONE =
  'The relay has forgotten this client: it has been away for longer than the relay remembers a lost link. This is what was last known.';

function sentenceOf(client: ClientDetails, isRecorded: boolean): ComponentChildren {
  if (isRecorded)
    return `${client.nodeId}, which held the link, is silent. The client may well be connected; this is what the node last said.`;
  if (client.status === 'DISCONNECTED')
    return (
      <>
        The link went down {client.disconnectedAt && <Ago at={client.disconnectedAt} />}
        {client.disconnectCause && `: ${CAUSE[client.disconnectCause]}`}. Calls wait for it as long as their callers
        allow.
      </>
    );
  if (client.status === 'STALE')
    return 'The link is up, but the client has been silent for 45 seconds. After 60 seconds it counts as disconnected.';
  return (
    <>
      Connected to {client.nodeId} since <Time at={client.connectedAt} />. {HEARTBEAT[client.heartbeat]}.
    </>
  );
}

export function ClientFacts({ client }: Part) {
  return (
    <Section title="Link">
      <Facts
        rows={[
          ['Type', capitalWord(client.clientType)],
          ['Node', <a href={nodesHref()}>{client.nodeId}</a>],
          ['Instance', <FullId id={client.instanceId} what="instance id" />],
          ['Connected', <Time at={client.connectedAt} />],
          client.disconnectedAt ? ['Went down', <Time at={client.disconnectedAt} />] : null,
          ['Replaced', <Replaced client={client} />],
        ]}
      />
    </Section>
  );
}

/** Shows the instances before the present one, newest first. */
function Replaced({ client }: Part) {
  if (client.predecessors.length === 0) return <>Not lately</>;
  return (
    <>
      {client.predecessors.slice(0, 3).map(({ instanceId, replacedAt, cause }) => (
        <small key={instanceId}>
          <ShortId id={instanceId} /> <Ago at={replacedAt} />: {CAUSE[cause]}
        </small>
      ))}
    </>
  );
}

export function ClientMetadata({ client }: Part) {
  if (client.metadata === null) return null;
  return (
    <Section title="Metadata" about="as the client sent it">
      <pre class="pre pre-wrap">{JSON.stringify(client.metadata, null, 2)}</pre>
    </Section>
  );
}
