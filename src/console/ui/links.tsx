/** Shows links to the pages of users, clients and commands. */
import { pagePath, segments } from '../base.ts';

type ClientId = { readonly userId: string; readonly clientId: string };
type CommandId = ClientId & { readonly commandId: string };

export const clientHref = ({ userId, clientId }: ClientId): string => pagePath(`clients/${segments(userId, clientId)}`);
export const callHref = ({ userId, clientId, commandId }: CommandId): string =>
  pagePath(`calls/${segments(userId, clientId, commandId)}`);
export const userHref = (userId: string): string => pagePath(`users/${segments(userId)}`);
export const streamHref = (stream: string): string => pagePath(`history?stream=${encodeURIComponent(stream)}`);
export const nodesHref = (): string => pagePath('nodes');

/** Shows a link such as `alice / kiosk-1`, which leads to the client. */
export function ClientLink(id: ClientId) {
  return (
    <a href={clientHref(id)} title={`${id.userId} / ${id.clientId}`}>
      {id.userId}
      <span class="who-of"> / </span>
      {id.clientId}
    </a>
  );
}
