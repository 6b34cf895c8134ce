/** Shows which agents have called, and how to connect an agent to this relay. */
import { AgentCallsDocument, type CallRowFragment } from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { callHref, queryPath, relayUrl } from '../base.ts';
import { isAdmin, viewer } from '../shell/facts.tsx';
import { CutNotice, ErrorNotice, Information, Loading } from '../ui/notices.tsx';
import { AsOf, Facts, PageHead, Section } from '../ui/page.tsx';
import { Table, nameColumn, labelled, column, type Column } from '../ui/table.tsx';
import { Ago } from '../ui/times.tsx';
import { CommandMark, CopyLine, NameLink } from '../ui/values.tsx';
import { whole } from '../ui/amounts.ts';
import { ActionLink } from './columns.tsx';
import { Pauses, StopButton, stopsOfAgents, usePauses } from './pauses.tsx';

/** An agent of a user, identified by its program, with its latest call. */
type Agent = {
  readonly userId: string;
  readonly program: string;
  readonly count: number;
  readonly last: CallRowFragment;
};

function agentsIn(calls: readonly CallRowFragment[]): readonly Agent[] {
  const groups = Map.groupBy(calls, ({ caller }) => JSON.stringify([caller.name, caller.program]));
  return [...groups.values()].flatMap(([last, ...others]) =>
    last
      ? [
          {
            userId: last.caller.name,
            program: last.caller.program ?? 'an unnamed program',
            count: 1 + others.length,
            last,
          },
        ]
      : [],
  );
}

const COLUMNS: readonly Column<Agent>[] = [
  nameColumn('Agent', 'c-1', ({ program, userId }) => (
    <NameLink href={queryPath('calls', { caller: userId })} text={program} />
  )),
  { head: 'Of user', class: 'c-3', label: 'of', cell: ({ userId }) => userId },
  labelled('Calls', 'r c-5', ({ count }) => whole(count)),
  { head: 'Last action', class: 'c-6', label: 'last', cell: ({ last }) => <ActionLink {...last} /> },
  column('It', 'nw c-4 c-end', ({ last }) => <CommandMark {...last} />),
  column('Last call', 'r nw c-2 c-end', ({ last }) => <Ago at={last.admittedAt} />),
];

function Callers() {
  const query = useQuery(AgentCallsDocument, {});
  const list = query.data?.commands;
  return (
    <Section
      title="Agents that called"
      about="calls that run, and those that ended in the last hour, latest first"
      side={<AsOf queries={[query]} />}
    >
      <ErrorNotice query={query} what="the calls of agents" />
      <CutNotice completeness={list?.completeness} />
      {list?.pageInfo.hasNextPage && (
        <Information>
          Only the {whole(list.nodes.length)} latest calls are counted. An agent that called before them is not listed.
        </Information>
      )}
      {!list && query.loading && <Loading what="the calls of agents" />}
      {list && (
        <Table
          caption="Agents that called"
          columns={COLUMNS}
          rows={agentsIn(list.nodes)}
          keyOf={({ userId, program }) => `${userId}/${program}`}
          hrefOf={({ last }) => callHref(last)}
          none="No agent has called in the last hour. An agent that is connected and calls nothing is not listed."
        />
      )}
    </Section>
  );
}

/** Whether the relay serves agents, which it states in the page. */
const isServed = document.querySelector('meta[name="callboard-mcp"]') !== null;

/** How to configure each agent program, with `TOKEN` in place of the agent's token. */
const HOSTS: readonly { readonly name: string; readonly about: string; readonly text: (url: string) => string }[] = [
  {
    name: 'Claude Code',
    about: 'a command',
    text: (url) => `claude mcp add --transport http callboard ${url} --header "Authorization: Bearer TOKEN"`,
  },
  {
    name: 'VS Code',
    about: '.vscode/mcp.json',
    text: (url) => json({ servers: { callboard: { type: 'http', url, headers: BEARER } } }),
  },
  {
    name: 'Cursor',
    about: '.cursor/mcp.json',
    text: (url) => json({ mcpServers: { callboard: { url, headers: BEARER } } }),
  },
  {
    name: 'Codex',
    about: '~/.codex/config.toml, with the token in the variable CALLBOARD_TOKEN',
    text: (url) => `[mcp_servers.callboard]\nurl = "${url}"\nbearer_token_env_var = "CALLBOARD_TOKEN"`,
  },
  {
    name: 'A host that starts a program',
    about: 'such as Claude Desktop',
    text: () => {
      const env = { CALLBOARD_URL: relayUrl(), CALLBOARD_TOKEN: 'TOKEN' };
      return json({ mcpServers: { callboard: { command: 'npx', args: ['callboard', 'mcp'], env } } });
    },
  },
];

const BEARER = { Authorization: 'Bearer TOKEN' };

const json = (value: object): string => JSON.stringify(value, null, 2);

export function AgentsPage() {
  const url = `${relayUrl()}/mcp`;
  const user = isAdmin.value ? 'USER' : (viewer.value?.userId ?? 'USER');
  const pauses = usePauses();
  const stops = stopsOfAgents(isAdmin.value ? null : (viewer.value?.userId ?? null));
  return (
    <>
      <PageHead title="Agents" acts={<StopButton stops={stops} onDone={pauses.again} />}>
        An agent gets the actions of one user’s clients as tools, over the Model Context Protocol (MCP).
      </PageHead>
      <Pauses query={pauses} concerns={({ callerKind }) => callerKind === null || callerKind === 'MCP'} />
      <Callers />
      {!isServed && (
        <Information>
          <b>This relay does not serve agents.</b> The setting MCP switches the endpoint on:{' '}
          <code>CALLBOARD_MCP=on</code>. It needs the package <code>@modelcontextprotocol/server</code>.
        </Information>
      )}
      <Section title="Endpoint">
        <Facts
          rows={[
            ['Address', <code key="address">{url}</code>],
            ['Token', 'that of a user; an administrator’s token is refused, because agents act for a user'],
            ['Transport', 'streamable HTTP; hosts that start a program use callboard mcp'],
          ]}
        />
      </Section>
      <Section title="A token for an agent" about="It may call these actions, and nothing else, for 30 days.">
        <CopyLine text={`callboard token --mcp --user ${user} --actions '*'`} what="the command" />
      </Section>
      <p class="after-table">
        The lines for hosts follow their documentation and were not tried with this relay. Replace TOKEN by the token.
      </p>
      {HOSTS.map(({ name, about, text }) => (
        <Section key={name} title={name} about={about}>
          <CopyLine text={text(url)} what={`the lines for ${name}`} />
        </Section>
      ))}
    </>
  );
}
