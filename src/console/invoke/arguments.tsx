/** Shows the arguments of a call as a form made from the schema, or as JSON text. Both show the same value. */
import { ErrorBoundary, lazy } from 'preact-iso';
import { useMemo, useState } from 'preact/hooks';
import { formSchemaOf, valueFault } from '../form/form-schema.ts';
import { Icon } from '../ui/icon.tsx';
import type { ParamsFault } from './checker.ts';

const SchemaForm = lazy(() => import('../form/form.tsx').then((room) => room.SchemaForm));

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
