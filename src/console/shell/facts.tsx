/** Reads what all pages need: who is signed in, the nodes, and how many callers wait. */
import { computed, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { useQuery, type Query } from '../api/query.ts';
import { now } from '../api/visible.ts';
import { signOutOf, token } from '../session.ts';
import { age } from '../ui/amounts.ts';

type SignedIn = gql.ViewerQuery['viewer'];

/** The signed-in administrator or user; null until the relay has answered. */
export const viewer = signal<SignedIn | null>(null);
export const isAdmin = computed(() => viewer.value?.kind === 'ADMIN');
/** The request for the viewer, whose error is shown until the relay has answered. Null before the request is sent. */
export const viewerQuery = signal<Query<unknown> | null>(null);
/** The URL of a trace with `{traceId}` in place of its id. Null: there is no such URL. */
const traceUrl = signal<string | null>(null);

/** Returns the URL at which a trace is shown; null if the relay has no setting for it. */
export const traceHref = (traceId: string): string | null =>
  traceUrl.value?.replaceAll('{traceId}', encodeURIComponent(traceId)) ?? null;

/** The number of callers that wait; null until the relay has answered. */
export const waitCount = signal<number | null>(null);
/** The age in milliseconds from which a wait counts as long. */
export const LONG_WAIT_MS = 60_000;
/** The number of long waits, from the relay's last answer. */
export const longWaitCount = signal(0);
/** The nodes that have reported recently. Empty for a user, because only administrators may see nodes. */
const nodes = signal<readonly gql.NodeRowFragment[]>([]);
/** The number of draining nodes. */
export const drainingCount = computed(() => drainingNodes.value.length);
/** The number of client links in the last reports of all nodes. Null for a user, and until the relay has answered. */
export const linkCount = computed(() =>
  nodes.value.length === 0 ? null : nodes.value.reduce((sum, { links }) => sum + links, 0),
);
/** Returns `in the last hour`, and if the relay started less than an hour ago, when it started. */
export function lastHourText(): string {
  const started = Math.min(...nodes.value.map(({ startedAt }) => (startedAt === null ? 0 : Date.parse(startedAt))));
  const ms = now.value - started;
  return `in the last hour${ms < 3_600_000 ? `; the relay started ${age(ms)} ago` : ''}`;
}

export const silentNodes = computed(() => nodes.value.filter(({ stale }) => stale));

/** Whether no node is silent, so that the relay's answers cover all nodes. */
export const isEveryNodeHeard = (): boolean => silentNodes.value.length === 0;
export const drainingNodes = computed(() => nodes.value.filter(({ stale, draining }) => draining && !stale));
/** The names of the nodes that report and take new work. */
export const workingNodes = computed(() =>
  nodes.value.filter(({ stale, draining }) => !stale && !draining).map(({ nodeId }) => nodeId),
);

/** Whether this node is silent. Its rows are then marked as last recorded. */
export const isSilent = (nodeId: string | null): boolean =>
  nodeId !== null && silentNodes.value.some((node) => node.nodeId === nodeId);

/** The delay before the numbers of the frame are read again, in milliseconds: usually, and while the tab is hidden. */
const EVERY_MS = 5_000;
const HIDDEN_EVERY_MS = 60_000;
const OFTEN = { everyMs: EVERY_MS, hiddenEveryMs: HIDDEN_EVERY_MS };
/** The longest delay that a browser's timer accepts, in milliseconds. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Reads the viewer, the nodes and the number of waiting callers while the console is shown. Renders nothing. */
export function ShellFacts() {
  const who = useQuery(gql.ViewerDocument, {});
  const found = who.data?.viewer ?? null;
  useEffect(() => {
    viewer.value = found;
    traceUrl.value = who.data?.server.traceUrl ?? null;
    viewerQuery.value = who;
  }, [found, who.error, who.loading]);
  useExpiry(found?.expiresAt ?? null);
  const kind = found?.kind;
  const { data } = useQuery(gql.ShellDocument, { isAdmin: kind === 'ADMIN' }, { ...OFTEN, skip: !kind });
  useEffect(() => {
    waitCount.value = data?.pendingRpcCount.count ?? null;
    longWaitCount.value = data?.longWaits.count ?? 0;
    nodes.value = data?.delivery?.nodes.nodes ?? [];
  }, [data]);
  return null;
}

/** Asks the user for another token when the present one expires, before a request fails. */
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

/** Whether the page is kept current by repeated requests, without a stream. */
export const isPagePolled = signal(false);
