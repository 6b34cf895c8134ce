/** The metadata that tells agents where to get a token (RFC 9728). */
import { ownOrigins } from '../web/forwarded.ts';
import type { OriginRule } from '../web/origin.ts';
import { sendText } from '../web/reply.ts';
import { type BuiltinRoute, JSON_TYPE } from './builtin-route.ts';
import type { RequestInfo } from './request-info.ts';

/** What the routes for agents depend on. */
export type AgentRoutes = {
  /** The issuers of the tokens that agents fetch themselves; empty if none is configured. */
  readonly issuers: readonly string[];
  readonly origins: OriginRule;
};

/** The path of the MCP endpoint, which agents use. */
export const MCP_PATH = '/mcp';
export const METADATA_PATH = `/.well-known/oauth-protected-resource${MCP_PATH}`;

/** Returns the URL of the metadata, with the origin by which the requester reached the relay. */
export function metadataUrl({ request }: RequestInfo, basePath: string, { trustProxy }: OriginRule): string {
  return `${ownOrigins(request, trustProxy)[0] ?? ''}${basePath}${METADATA_PATH}`;
}

/** Returns the value of a `www-authenticate` header that refers to the metadata. */
export function challenge(metadata: string): string {
  return `Bearer resource_metadata="${metadata}", scope="mcp"`;
}

export function metadataRoute({ issuers, origins }: AgentRoutes, basePath: string): BuiltinRoute['handle'] {
  return ({ request, response }) => {
    const metadata = {
      resource: `${ownOrigins(request, origins.trustProxy)[0] ?? ''}${basePath}${MCP_PATH}`,
      authorization_servers: issuers,
      scopes_supported: ['mcp'],
      bearer_methods_supported: ['header'],
      resource_name: 'callboard',
    };
    sendText(response, 200, JSON_TYPE, JSON.stringify(metadata));
  };
}
