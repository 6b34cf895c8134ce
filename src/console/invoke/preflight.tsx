/**
 * Shows whether the relay would admit a call, with the verdict of each of its checks, and the fields for the call's
 * time limits.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import * as gql from '../../../generated/console.ts';
import { useQuery } from '../api/query.ts';
import { exactJson } from '../api/request.ts';
import { Select } from '../ui/dialogs.tsx';
import { ErrorNotice } from '../ui/notices.tsx';
import { Section } from '../ui/page.tsx';
import { Prose } from '../ui/payload.tsx';
import { Shape, type ShapeName } from '../ui/shapes.tsx';
import { Button, StateMark } from '../ui/values.tsx';
import { clock, zoneName } from '../ui/zones.ts';
import { capitalWord } from '../ui/text-format.ts';
import { syntaxFault, type ParamsFault } from './checker.ts';
import type { CallInput } from './sent.tsx';

type Layer = gql.PreflightQuery['preflightInvocation']['layers'][number];

const LOOKS: Readonly<Record<gql.PreflightVerdict, { readonly shape: ShapeName; readonly word: string }>> = {
  PASS: { shape: 'pass', word: 'passes' },
  REFUSE: { shape: 'failed', word: 'would refuse' },
  UNKNOWN: { shape: 'open', word: 'not known' },
  SKIPPED: { shape: 'skip', word: 'skipped' },
};

/** How long the input must stay unchanged before the relay is asked, in milliseconds. */
const REST_MS = 400;

type PreflightProps = {
  readonly input: CallInput;
  /** The params of the call as JSON text. */
  readonly params: string;
  readonly faults: readonly ParamsFault[];
  /** Whether the console has checked the params against the action's schema and found no fault. */
  readonly isFit: boolean;
  /** Additional buttons. */
  readonly children: ComponentChildren;
};

export function Preflight({ input, params, faults, isFit, children }: PreflightProps) {
  const broken = faults.some(({ syntax }) => syntax);
  const rested = useRested({ input, params }, broken);
  const query = useQuery(
    gql.PreflightDocument,
    { input: { ...rested.input, params: syntaxFault(rested.params) ? null : exactJson(rested.params) } },
    { skip: broken },
  );
  const found = query.data?.preflightInvocation;
  return (
    <Section
      title="Would it be admitted?"
      about={found && `as of ${clock(found.asOf)} ${zoneName()}; reserves nothing`}
    >
      <ErrorNotice query={query} what="whether it would be admitted" />
      <div aria-live="polite">
        {found && <Verdict found={found} />}
        {faults.length > 0 && <StateMark shape="failed">The client would refuse its arguments.</StateMark>}
      </div>
      {found && <Checks layers={found.layers.map((layer) => withChecked(layer, faults, isFit))} />}
      <p class="side-acts">
        <Button look="btn-s" text="Ask again" onClick={query.again} />
        {children}
      </p>
    </Section>
  );
}

function Checks({ layers }: { readonly layers: readonly Layer[] }) {
  const ofRelay = layers.filter(({ askedOf }) => askedOf === 'RELAY');
  const ofClient = layers.filter(({ askedOf }) => askedOf === 'CLIENT');
  return (
    <details class="checks">
      <summary>
        The relay: {countsOf(ofRelay)}. The client: {countsOf(ofClient)}.
      </summary>
      <h3 class="layers-head">Asked of the relay, in this order</h3>
      <Layers layers={ofRelay} />
      <h3 class="layers-head">Asked of the client, when it gets there</h3>
      <Layers layers={ofClient} />
    </details>
  );
}

const COUNTED = ['REFUSE', 'PASS', 'UNKNOWN', 'SKIPPED'] as const;

/** Counts the checks by verdict: `7 pass, 1 skipped`. */
function countsOf(layers: readonly Layer[]): string {
  return COUNTED.flatMap((verdict) => {
    const count = layers.filter((layer) => layer.verdict === verdict).length;
    return count === 0 ? [] : `${count} ${count > 1 && verdict === 'PASS' ? 'pass' : LOOKS[verdict].word}`;
  }).join(', ');
}

function Verdict({ found }: { readonly found: gql.PreflightQuery['preflightInvocation'] }) {
  const { wouldAdmit, firstRefusal } = found;
  if (wouldAdmit !== 'PASS' && firstRefusal)
    return (
      <p>
        <StateMark shape="failed">The relay would refuse it.</StateMark> <Prose text={firstRefusal.message} />{' '}
        {firstRefusal.code && <code>{firstRefusal.code}</code>}
      </p>
    );
  return (
    <p>
      {wouldAdmit === 'PASS' ? (
        <StateMark shape="pass">The relay would admit it.</StateMark>
      ) : (
        <StateMark shape="open">Whether the relay would admit it is not known.</StateMark>
      )}
    </p>
  );
}

function Layers({ layers }: { readonly layers: readonly Layer[] }) {
  return (
    <ul class="layers">
      {layers.map((layer) => {
        const { shape, word } = LOOKS[layer.verdict];
        return (
          <li key={layer.layer} class={`v-${shape}`}>
            <Shape name={shape} />
            <b>
              {nameOf(layer.layer)}
              <span class="sr">: {word}</span>
            </b>
            <p>{layer.message}</p>
          </li>
        );
      })}
    </ul>
  );
}

/**
 * Adds the result of the console's own check of the arguments to the layer of the client. Only the client can refuse
 * arguments.
 */
function withChecked(layer: Layer, faults: readonly ParamsFault[], isFit: boolean): Layer {
  if (layer.layer !== 'CLIENT_ARGUMENTS') return layer;
  if (isFit) return { ...layer, verdict: 'PASS', message: 'They fit its schema, as checked here.' };
  if (faults.length === 0) return layer;
  const message = faults.map(({ at, text }) => (at === '' ? text : `${at}: ${text}`)).join(' ');
  return { ...layer, verdict: 'REFUSE', message: `${message} Checked here against its schema.` };
}

const nameOf = (layer: gql.PreflightLayerName): string => capitalWord(layer.replace(/^CLIENT_/, ''));

/** Returns the input as it was when it last stayed unchanged for `restMs`. */
export function useRested<Value>(value: Value, skip: boolean, restMs = REST_MS): Value {
  const [rested, setRested] = useState(value);
  const key = JSON.stringify(value);
  useEffect(() => {
    if (skip) return undefined;
    const timer = setTimeout(() => setRested(value), restMs);
    return () => clearTimeout(timer);
  }, [key, skip]);
  return rested;
}

// The fields for how long a call may wait, and for which stage of the command.

export type BudgetValues = {
  readonly respondWithinMs: number;
  readonly connectWithinMs: number;
  readonly waitFor: gql.WaitStage;
};

export const DEFAULT_BUDGETS: BudgetValues = { respondWithinMs: 30_000, connectWithinMs: 0, waitFor: 'COMPLETED' };

const WAITS: readonly { readonly value: gql.WaitStage; readonly text: string }[] = [
  { value: 'COMPLETED', text: 'the end' },
  { value: 'ACKNOWLEDGED', text: 'receipt by the client' },
  { value: 'ADMITTED', text: 'admission only' },
];

type BudgetsProps = { readonly values: BudgetValues; readonly onChange: (values: BudgetValues) => void };

export function Budgets({ values, onChange }: BudgetsProps) {
  const { respondWithinMs, connectWithinMs, waitFor } = values;
  const chooseStage = (name: string): void => {
    const chosen = WAITS.find(({ value }) => value === name);
    if (chosen) onChange({ ...values, waitFor: chosen.value });
  };
  return (
    <details class="budgets">
      <summary>
        Waits {respondWithinMs / 1000} s for {WAITS.find(({ value }) => value === waitFor)?.text}, and{' '}
        {connectWithinMs / 1000} s for a client that is away
      </summary>
      <div class="pair">
        <SecondsField
          id="respond-within"
          label="Time to answer, seconds"
          ms={respondWithinMs}
          onChange={(ms) => onChange({ ...values, respondWithinMs: ms })}
        />
        <SecondsField
          id="connect-within"
          label="Time to connect, seconds"
          ms={connectWithinMs}
          onChange={(ms) => onChange({ ...values, connectWithinMs: ms })}
        />
        <div class="field">
          <label for="wait-for">Wait for</label>
          <Select id="wait-for" value={waitFor} choices={WAITS} onChoose={chooseStage} />
        </div>
      </div>
    </details>
  );
}

type SecondsProps = {
  readonly id: string;
  readonly label: string;
  readonly ms: number;
  readonly onChange: (ms: number) => void;
};

function SecondsField({ id, label, ms, onChange }: SecondsProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        class="in"
        id={id}
        type="number"
        min="0"
        step="any"
        value={ms / 1000}
        onInput={({ currentTarget }) => onChange(Math.round(Math.max(0, currentTarget.valueAsNumber || 0) * 1000))}
      />
    </div>
  );
}
