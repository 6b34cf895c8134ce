/** Shows failed calls in groups. Each group links to the list of its calls and to its latest call. */
import { useMemo } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { reasonText } from '../../protocol/visible-text.ts';
import { useQuery, type Query } from '../api/query.ts';
import { callHref, queryPath } from '../base.ts';
import { isAdmin, silentNodes } from '../shell/facts.tsx';
import { useUrlState } from '../ui/url-state.ts';
import { CutNotice, ErrorNotice } from '../ui/notices.tsx';
import { Section, Views } from '../ui/page.tsx';
import { Table, labelled, nameColumn, type Column } from '../ui/table.tsx';
import { Ago } from '../ui/times.tsx';
import { OUTCOME_ORDER, OutcomeMark } from '../ui/values.tsx';
import { percent, whole } from '../ui/amounts.ts';
import { nameClass, plural } from '../ui/text-format.ts';

type Failures = gql.FailuresQuery['delivery']['failures'];
type Group = Failures['groups'][number];

/** The value in the URL that stands for all outcomes that count as failures. */
export const ANY_FAILURE = 'failure';
/** The outcomes that count as failures. These are the ones that the relay counts if a filter names no outcome. */
export const FAILURE_OUTCOMES = ['FAILED', 'EXPIRED', 'OUTCOME_UNKNOWN'] as const;

/**
 * The delay after each answer before failures are counted again, in milliseconds. It is long because the relay must
 * read records.
 */
const EVERY_MS = 15_000;
/** The maximum number of groups that a page shows. */
const SHOWN = 5;

/**
 * Returns the time this many milliseconds ago; null for null. The time is rounded down to a minute, or to ten seconds
 * for a short period, so that repeated requests have equal filters.
 */
export function timeBefore(ms: number | null): string | null {
  if (ms === null) return null;
  const step = ms < 300_000 ? 10_000 : 60_000;
  return new Date(Math.floor((Date.now() - ms) / step) * step).toISOString();
}

type Grouping = { readonly name: string; readonly text: string; readonly by: readonly gql.FailureKey[] };
const DEFAULT: Grouping = { name: 'cause', text: 'Action and code', by: ['ACTION', 'CODE'] };
const GROUPINGS: readonly Grouping[] = [
  DEFAULT,
  { name: 'action', text: 'Action', by: ['ACTION'] },
  { name: 'code', text: 'Code', by: ['CODE'] },
  { name: 'client', text: 'Client', by: ['CLIENT'] },
  { name: 'node', text: 'Node', by: ['NODE'] },
];

function useGrouping(): Grouping {
  const { values } = useUrlState();
  return GROUPINGS.find(({ name }) => name === values['by']) ?? DEFAULT;
}

/** Counts the failed calls that match a filter, in the grouping that the URL names. For administrators only. */
export function useFailures(filter: gql.DeliveryFilter, { skip = false } = {}): Query<gql.FailuresQuery> {
  const { by } = useGrouping();
  const asking = { everyMs: EVERY_MS, skip: skip || !isAdmin.value };
  return useQuery(gql.FailuresDocument, { filter, by: [...by], first: SHOWN }, asking);
}

/** Returns the maximum number of calls that an answer read, if it did not read all; null if it did. */
export const boundOf = ({ completeness }: Failures): number | null =>
  completeness.sources.find(({ reason }) => reason === 'LIMIT_REACHED')?.limit ?? null;

type FailureGroupsProps = {
  readonly query: Query<gql.FailuresQuery>;
  /** The period that is counted, as the end of a sentence: `in the last 15 min`. */
  readonly when: string;
  /** The parameters of the URL that select the page's calls. Links to the calls of a group contain them too. */
  readonly kept: Readonly<Record<string, string>>;
};

export function FailureGroups({ query, when, kept }: FailureGroupsProps) {
  const grouping = useGrouping();
  const columns = useMemo(() => columnsOf(grouping, kept), [grouping, JSON.stringify(kept)]);
  const failures = query.data?.delivery.failures;
  return (
    <Section
      title="Not completed"
      class="groups"
      about={failures && <About failures={failures} when={when} />}
      side={failures && failures.count > 0 && <GroupingViews shown={grouping} />}
    >
      <ErrorNotice query={query} what="the failures" />
      {failures && <FailureNotices failures={failures} />}
      {failures && failures.count > 0 && (
        <>
          <Table
            caption={`Not completed, by ${grouping.text.toLowerCase()}`}
            columns={columns}
            rows={failures.groups}
            keyOf={keyOf}
          />
          {failures.groupCount > failures.groups.length && (
            <p class="quiet">
              The largest {failures.groups.length} of {plural(failures.groupCount, 'group')}.
            </p>
          )}
        </>
      )}
    </Section>
  );
}

/** How long the relay keeps records of ended calls, in milliseconds. */
const RECORDS_MS = 3_600_000;

type WindowProps = { readonly seconds: number; readonly text: string };

/**
 * Shows the failures in a window up to now. A window of more than an hour is cut to the last hour, because records are
 * kept no longer.
 */
export function WindowFailures({ seconds, text }: WindowProps) {
  const ms = Math.min(seconds * 1000, RECORDS_MS);
  const query = useFailures({ admittedAfter: timeBefore(ms) });
  const isWhole = ms === seconds * 1000;
  const when = isWhole ? `in the last ${text}` : 'in the last hour, for which ended calls are on record';
  return <FailureGroups query={query} when={when} kept={{ since: `${ms / 60_000}m` }} />;
}

function GroupingViews({ shown }: { readonly shown: Grouping }) {
  const { hrefWith } = useUrlState();
  const views = GROUPINGS.map((one) => ({
    name: one.text,
    href: hrefWith({ by: one === DEFAULT ? null : one.name }),
    isCurrent: one === shown,
  }));
  return <Views label="Not completed by" views={views} />;
}

/**
 * Shows the number of calls for each outcome, with the outcome's shape. The outcomes are listed separately, because an
 * unknown outcome is not a failure: the call may have succeeded.
 */
function About({ failures, when }: { readonly failures: Failures; readonly when: string }) {
  if (failures.count === 0) return <>none {when}</>;
  return (
    <>
      {OUTCOME_ORDER.map((outcome) => {
        const count = failures.outcomes.find((one) => one.outcome === outcome)?.count ?? 0;
        return (
          count > 0 && (
            <span key={outcome} class="ended-as">
              {whole(count)} <OutcomeMark outcome={outcome} />
            </span>
          )
        );
      })}{' '}
      {when}
    </>
  );
}

function FailureNotices({ failures }: { readonly failures: Failures }) {
  const bound = boundOf(failures);
  const others = failures.completeness.sources.filter(({ reason }) => reason !== 'LIMIT_REACHED');
  return (
    <>
      {bound !== null && (
        <p class="quiet">Counted among the newest {whole(bound)} calls. Older calls are not counted.</p>
      )}
      <CutNotice
        completeness={{ complete: others.every(({ complete }) => complete), sources: others }}
        named={silentNodes.value.map(({ nodeId }) => nodeId)}
      />
    </>
  );
}

const keyOf = ({ action, code, userId, clientId, nodeId }: Group): string =>
  JSON.stringify([action, code, userId, clientId, nodeId]);

const COLUMNS: readonly Column<Group>[] = [
  labelled('Calls', 'r nw c-2 c-end', ({ count }) => whole(count)),
  labelled('Share', 'r nw c-4 c-end', ({ share }) => percent(share)),
  labelled('Last', 'r nw c-5', ({ last }) => (
    <a href={callHref(last)}>
      <Ago at={last.admittedAt} />
    </a>
  )),
];

function columnsOf(grouping: Grouping, kept: FailureGroupsProps['kept']): readonly Column<Group>[] {
  const names: Column<Group> = nameColumn(grouping.text, 'c-1', (group) => (
    <a href={listHref(group, kept)} class={nameClass(...partsOf(group))}>
      <GroupName group={group} />
    </a>
  ));
  return [names, ...COLUMNS];
}

/** Shows the values that all failures of a group share. */
function GroupName({ group }: { readonly group: Group }) {
  const [first = 'None', ...others] = partsOf(group);
  return (
    <>
      {first}
      {others.length > 0 && <span class="who-of">: {others.join(': ')}</span>}
    </>
  );
}

function partsOf({ action, code, userId, clientId, nodeId }: Group): readonly string[] {
  const client = clientId === null ? null : `${userId} / ${clientId}`;
  return [action, code === null ? null : reasonText(code), client, nodeId].filter((part) => part !== null);
}

function listHref({ action, code, userId, clientId, nodeId }: Group, kept: FailureGroupsProps['kept']): string {
  const values = { action, code, user: userId, client: clientId, node: nodeId };
  const given = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== null);
  return queryPath('calls', { outcome: ANY_FAILURE, ...kept, ...Object.fromEntries(given) });
}
