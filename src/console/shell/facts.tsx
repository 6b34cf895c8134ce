/** Reads what the frame of every page shows: who is signed in, the nodes, and how many callers wait. */
import { computed, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import {
  ShellOfAdminDocument,
  ShellOfUserDocument,
  ViewerDocument,
  type ShellOfAdminQuery,
  type ViewerQuery,
} from '../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { signOutOf, token } from '../session/session.ts';

export type SignedIn = ViewerQuery['viewer'];
export type ShellNode = ShellOfAdminQuery['delivery']['nodes']['nodes'][number];

/** The signed-in administrator or user; null until the relay has answered. */
export const viewer = signal<SignedIn | null>(null);
export const isAdmin = computed(() => viewer.value?.kind === 'ADMIN');
/** The number of callers that wait; null until the relay has answered. */
export const waitCount = signal<number | null>(null);
/** The nodes that have reported recently. Empty for a user, because only administrators may see nodes. */
export const nodes = signal<readonly ShellNode[]>([]);
export const silentNodes = computed(() => nodes.value.filter(({ stale }) => stale));

/** Whether this node is silent. The rows that it holds are then shown as last recorded. */
export function isSilent(nodeId: string | null): boolean {
  return nodeId !== null && silentNodes.value.some((node) => node.nodeId === nodeId);
}

/** The pause before the numbers of the header are read again, in milliseconds. */
const EVERY_MS = 5_000;
/** The longest delay of a browser's timer, in milliseconds. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Reads the viewer, the nodes and the number of waiting callers while the console is shown. Renders nothing. */
export function ShellFacts() {
  const who = useQuery(ViewerDocument, {});
  const found = who.data?.viewer ?? null;
  useEffect(() => {
    viewer.value = found;
  }, [found]);
  useExpiry(found?.expiresAt ?? null);
  const kind = found?.kind;
  const ofAdmin = useQuery(ShellOfAdminDocument, {}, { everyMs: EVERY_MS, skip: kind !== 'ADMIN' });
  const ofUser = useQuery(ShellOfUserDocument, {}, { everyMs: EVERY_MS, skip: kind !== 'USER' });
  const count = (kind === 'ADMIN' ? ofAdmin : ofUser).data?.pendingRpcCount.count ?? null;
  useEffect(() => {
    waitCount.value = count;
    nodes.value = ofAdmin.data?.delivery.nodes.nodes ?? [];
  }, [count, ofAdmin.data]);
  return null;
}

/** Asks for another token when the present one expires, before a request fails. */
function useExpiry(expiresAt: string | null): void {
  const bearer = token.value;
  useEffect(() => {
    if (expiresAt === null || bearer === null) return undefined;
    const left = Date.parse(expiresAt) - Date.now();
    if (left > TIMER_MAX_MS) return undefined;
    const timer = setTimeout(() => signOutOf(bearer, 'expired', null), Math.max(0, left));
    return () => clearTimeout(timer);
  }, [expiresAt, bearer]);
}
