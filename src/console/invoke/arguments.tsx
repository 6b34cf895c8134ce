/** Shows the arguments of a call as a form or as JSON, and lets a worker check them against the action's schema. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ErrorBoundary } from 'preact-iso';
import { Switch, focusFirstField } from '../ui/dialogs.tsx';
import { formSchemaOf, valueFault } from '../form/form-schema.ts';
import { LoadFault, loaded } from '../ui/loaded.tsx';
import { Icon } from '../ui/icons.tsx';
import {
  type ParamsFault,
  createChecker,
  syntaxFault,
  type CheckEvents,
  type CheckWorker,
  type Checked,
  type Checker,
} from './checker.ts';
import workerUrl from './check-worker.ts?worker&url';

const SchemaForm = loaded(
  () => import('../form/form.tsx'),
  (room) => room.SchemaForm,
  () => <LoadFault what="The form" />,
);

type ArgumentsProps = {
  /** The schema of the action. Null: the action has no schema, so there is no form. */
  readonly schema: unknown;
  /** The arguments of the call as JSON text. */
  readonly text: string;
  readonly faults: readonly ParamsFault[];
  /** The reason why the arguments were not checked; null if they were. */
  readonly unchecked: string | null;
  /** Called with the changed arguments. `asJson`: whether they were edited as JSON. */
  readonly onChange: (text: string, asJson: boolean) => void;
};

export function ArgumentsEditor({ schema, text, faults, unchecked, onChange }: ArgumentsProps) {
  const hasSchema = typeof schema === 'object' && schema !== null;
  const made = useMemo(() => (hasSchema ? formSchemaOf(schema) : null), [schema]);
  const form = made !== null && made.why === null ? made : null;
  const [asJson, setAsJson] = useState(false);
  const broken = faults.some(({ syntax }) => syntax);
  const why = made?.why ?? (form && !broken ? valueFault(form, JSON.parse(text)) : null);
  const withForm = form !== null && why === null;
  const shownAsJson = asJson || !withForm || broken;
  return (
    <>
      <div class="sec-head">
        <h2>Arguments</h2>
        {withForm && (
          <Switch
            legend="Show as"
            name="arguments-as"
            choices={[
              { value: false, text: 'Form', disabled: broken },
              { value: true, text: 'JSON' },
            ]}
            chosen={shownAsJson}
            onChoose={setAsJson}
          />
        )}
      </div>
      {why !== null && <p class="hint hint-above">The arguments are written as JSON: {why}.</p>}
      {unchecked !== null && (
        <p class="hint hint-above" role="status">
          {unchecked}
        </p>
      )}
      {shownAsJson ? (
        <JsonField text={text} faults={faults} hasSchema={hasSchema} onChange={onChange} />
      ) : (
        <ErrorBoundary>
          <SchemaForm form={form} text={text} faults={faults} onChange={(changed) => onChange(changed, false)} />
        </ErrorBoundary>
      )}
    </>
  );
}

type JsonFieldProps = Pick<ArgumentsProps, 'text' | 'faults' | 'onChange'> & { readonly hasSchema: boolean };

function JsonField({ text, faults, hasSchema, onChange }: JsonFieldProps) {
  const field = useRef<HTMLDivElement>(null);
  useEffect(() => focusFirstField(field.current), []);
  return (
    <div class="field" ref={field}>
      <label for="params">{hasSchema ? 'As JSON' : 'As JSON: the action has no schema'}</label>
      <textarea
        class="in code"
        id="params"
        rows={12}
        spellcheck={false}
        value={text}
        aria-invalid={faults.length > 0}
        aria-describedby={faults.length > 0 ? 'params-faults' : undefined}
        onInput={(event) => onChange(event.currentTarget.value, true)}
      />
      {faults.length > 0 && (
        <ul id="params-faults">
          {faults.map(({ at, text: fault }) => (
            <li key={`${at} ${fault}`} class="err">
              <Icon name="warn" />
              <span>{at === '' ? fault : `${at}: ${fault}`}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** The result of the latest check that has ended. */
type LatestCheck = Checked & {
  /** Whether the result is for the present arguments. If false, they are still being checked. */
  readonly isCurrent: boolean;
};

const NOTHING_FOUND: Checked = { faults: [], unchecked: null };

/**
 * Returns the result of checking the arguments, which are given as JSON text. A text that is not JSON gets its fault at
 * once. If the action has no schema, there is nothing to check. Any other text is checked by the worker within a
 * limited time; until then, the previous result is returned.
 */
export function useCheck(schema: unknown, text: string): LatestCheck {
  const [latest, setLatest] = useState({ ...NOTHING_FOUND, of: { schema: null as unknown, text: '' } });
  const checker = useRef<Checker | null>(null);
  const given = useRef('');
  const fault = syntaxFault(text);
  const hasSchema = schema !== null;
  useEffect(() => {
    if (!hasSchema) return undefined;
    const onChecked = (checked: Checked): void => setLatest({ ...checked, of: { schema, text: given.current } });
    const started = createChecker({ schema, startWorker, after, onChecked });
    checker.current = started;
    return () => started.close();
  }, [schema]);
  useEffect(() => {
    if (fault !== null || !hasSchema) return;
    given.current = text;
    checker.current?.check(text);
  }, [schema, text]);
  if (fault !== null) return { faults: [fault], unchecked: null, isCurrent: true };
  if (!hasSchema) return { ...NOTHING_FOUND, isCurrent: true };
  return { ...latest, isCurrent: latest.of.schema === schema && latest.of.text === text };
}

function after(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

type Policies = {
  createPolicy(
    name: string,
    rules: { readonly createScriptURL: (url: string) => string },
  ): { createScriptURL(url: string): string };
};

/** Starts the worker. The content security policy requires Trusted Types, and the only policy accepts no other URL. */
function startWorker({ onMessage, onError }: CheckEvents): CheckWorker {
  const worker = new Worker((trusted ??= trustedUrl()));
  worker.onmessage = ({ data }) => onMessage(data);
  worker.onerror = onError;
  return { send: (message) => worker.postMessage(message), end: () => worker.terminate() };
}

let trusted: string | undefined;

function trustedUrl(): string {
  const policies: Policies | undefined = Reflect.get(globalThis, 'trustedTypes');
  if (!policies) return workerUrl;
  const createScriptURL = (url: string): string => {
    if (url === workerUrl) return url;
    throw new TypeError(`The console starts no worker from ${url}.`);
  };
  return policies.createPolicy('callboard-worker', { createScriptURL }).createScriptURL(workerUrl);
}
