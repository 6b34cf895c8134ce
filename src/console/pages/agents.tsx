/** Shows the page that says how an agent is connected to this relay. */
import { relayUrl } from '../base.ts';
import { isAdmin, viewer } from '../shell/facts.tsx';
import { Facts, Information, PageHead, Section } from '../ui/page.tsx';
import { CopyLine } from '../ui/values.tsx';

/** Whether the relay serves agents, as it wrote into the page. */
const isServed = document.querySelector('meta[name="callboard-mcp"]') !== null;

/** How each host is configured, with `TOKEN` in place of the token of the agent. */
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

function json(value: object): string {
  return JSON.stringify(value, null, 2);
}

export function AgentsPage() {
  const url = `${relayUrl()}/mcp`;
  const user = isAdmin.value ? 'USER' : (viewer.value?.userId ?? 'USER');
  return (
    <>
      <PageHead title="Agents">
        An agent gets the actions of one user’s clients as tools, over the Model Context Protocol (MCP).
      </PageHead>
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
