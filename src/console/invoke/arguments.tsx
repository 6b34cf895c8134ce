/**
 * Shows the arguments of a call as a form made from the schema, or as JSON text. Both show the same value, which a
 * worker checks.
 */
import { ErrorBoundary } from 'preact-iso';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { formSchemaOf, valueFault } from '../form/form-schema.ts';
import { LoadFault, loaded } from '../ui/page.tsx';
import { Icon } from '../ui/values.tsx';
import workerUrl from './check-worker.ts?worker&url';
import {
  createChecker,
  syntaxFault,
  type CheckEvents,
  type CheckWorker,
  type Checked,
  type Checker,
  type ParamsFault,
} from './checker.ts';

const SchemaForm = loaded(
  () => import('../form/form.tsx'),
  (room) => room.SchemaForm,
  () => <LoadFault what="The form" />,
);

type ArgumentsProps = {
  /** The schema of the action. Null: the action has none, so there is no form. */
  readonly schema: unknown;
  /** The arguments of the call, as JSON text. */
  readonly text: string;
  readonly faults: readonly ParamsFault[];
  /** Why the arguments were not checked here. Null: they were. */
  readonly unchecked: string | null;
  readonly onChange: (text: string) => void;
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
          <div class="switch" role="radiogroup" aria-label="Show as">
            <label>
              <input
                type="radio"
                name="arguments-as"
                checked={!shownAsJson}
                disabled={broken}
                onChange={() => setAsJson(false)}
              />
              Form
            </label>
            <label>
              <input type="radio" name="arguments-as" checked={shownAsJson} onChange={() => setAsJson(true)} />
              JSON
            </label>
          </div>
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
          <SchemaForm form={form} text={text} faults={faults} onChange={onChange} />
        </ErrorBoundary>
      )}
    </>
  );
}

type JsonFieldProps = Pick<ArgumentsProps, 'text' | 'faults' | 'onChange'> & { readonly hasSchema: boolean };

function JsonField({ text, faults, hasSchema, onChange }: JsonFieldProps) {
  return (
    <div class="field">
      <label for="params">{hasSchema ? 'As JSON' : 'As JSON: the action has no schema'}</label>
      <textarea
        class="in code"
        id="params"
        rows={12}
        spellcheck={false}
        value={text}
        aria-invalid={faults.length > 0}
        aria-describedby={faults.length > 0 ? 'params-faults' : undefined}
        onInput={(event) => onChange(event.currentTarget.value)}
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

/** What is known before the first check. */
export const NOTHING_FOUND: Checked = { faults: [], unchecked: null };

/**
 * Returns the result of checking the arguments, given as JSON text. The fault of a text that is not JSON is returned at
 * once. The result for any other text comes from the worker; until then, the previous result is returned.
 */
export function useCheck(schema: unknown, text: string): Checked {
  const [checked, setChecked] = useState<Checked>(NOTHING_FOUND);
  const checker = useRef<Checker | null>(null);
  const fault = syntaxFault(text);
  const hasSchema = schema !== null;
  useEffect(() => {
    if (!hasSchema) return undefined;
    const started = createChecker({ schema, startWorker, after, onChecked: setChecked });
    checker.current = started;
    return () => started.close();
  }, [schema]);
  useEffect(() => {
    if (fault === null && hasSchema) checker.current?.check(text);
  }, [schema, text]);
  if (fault !== null) return { faults: [fault], unchecked: null };
  return hasSchema ? checked : NOTHING_FOUND;
}

function after(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

type Policies = {
  createPolicy(
    name: string,
    rules: { readonly createScriptURL: (url: string) => string },
  ): {
    createScriptURL(url: string): string;
  };
};

/**
 * Starts the worker. The page's content security policy requires Trusted Types and allows one policy, by its name. That
 * policy accepts the address of this worker only.
 */
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
