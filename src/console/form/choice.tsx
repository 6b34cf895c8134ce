/**
 * Shows the fields that the console draws instead of the forms library: a choice among alternatives, a constant, and a
 * part that only JSON text can show. Also shows errors, and names members that have no field.
 */
import type { FieldProps } from '@rjsf/utils';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Fault, Icon } from '../ui/values.tsx';
import { choiceIn, choicesIn, hintOf, isLike, typeWord } from './form-schema.ts';

export function Errors({ id, texts = [] }: { readonly id: string; readonly texts?: readonly string[] | undefined }) {
  if (texts.length === 0) return null;
  return (
    <div id={`${id}-error`}>
      {[...new Set(texts)].map((text) => (
        <Fault key={text} text={text} isAlert={false} />
      ))}
    </div>
  );
}

type SegmentsProps = {
  readonly id: string;
  readonly title: ComponentChildren;
  readonly hint: string;
  readonly description?: ComponentChildren;
  readonly options: readonly string[];
  /** The index of the chosen option; -1: none. */
  readonly chosen: number;
  /** Whether a further option leaves the value out. It is the chosen one while `isLeftOut` is true. */
  readonly canLeaveOut: boolean;
  readonly isLeftOut: boolean;
  /** Called with the index of an option, or null for the value that is left out. */
  readonly onChoose: (at: number | null) => void;
  readonly children?: ComponentChildren;
};

/** The total length of the options, in characters, up to which they are shown side by side. Longer ones are a menu. */
const SIDE_BY_SIDE = 44;

/** Shows a choice: the options side by side if they are few and short, otherwise as a menu. */
export function Segments(props: SegmentsProps) {
  const { id, title, hint, description, options, chosen, canLeaveOut, isLeftOut, onChoose, children } = props;
  const all = canLeaveOut ? [LEFT_OUT, ...options] : options;
  const shift = canLeaveOut ? 1 : 0;
  const at = isLeftOut && canLeaveOut ? 0 : chosen < 0 ? -1 : chosen + shift;
  const choose = (index: number): void => onChoose(index < shift ? null : index - shift);
  return (
    <fieldset class="field">
      <legend class="sr">{title}</legend>
      <div class="label-row">
        <span class="label" aria-hidden="true">
          {title}
        </span>
        <span class="opt">{hint}</span>
      </div>
      {all.join('').length <= SIDE_BY_SIDE ? (
        <div class="seg">
          {all.map((text, index) => (
            <label key={`${index} ${text}`}>
              <input type="radio" name={id} checked={index === at} onChange={() => choose(index)} />
              {text}
            </label>
          ))}
        </div>
      ) : (
        <select
          class="in"
          id={`${id}-choice`}
          aria-label={String(title)}
          value={at}
          onChange={(event) => choose(Number(event.currentTarget.value))}
        >
          {at < 0 && <option value={-1}>Choose one</option>}
          {all.map((text, index) => (
            <option key={`${index} ${text}`} value={index}>
              {text}
            </option>
          ))}
        </select>
      )}
      {children}
      {description && <p class="hint">{description}</p>}
    </fieldset>
  );
}

const LEFT_OUT = 'Left out';

/** Shows a choice among alternatives, and below it the fields of the one that is chosen. */
export function ChoiceField(props: FieldProps) {
  const { fieldPathId, formData, name, schema, uiSchema, required = false, registry, rawErrors, onChange } = props;
  const [wanted, setWanted] = useState(-1);
  const choices = choicesIn(schema);
  const wantedSchema = choices[wanted];
  const isLeftOut = formData === undefined && (wantedSchema === undefined || startOf(wantedSchema) !== undefined);
  const isWanted = wantedSchema !== undefined && (formData === undefined || isLike(wantedSchema, formData));
  const at = isLeftOut ? -1 : isWanted ? wanted : choiceIn(schema, formData);
  const choice = choices[at];
  function startOf(option: (typeof choices)[number]): unknown {
    return option.const ?? registry.schemaUtils.getDefaultFormState(option, undefined);
  }
  const choose = (index: number | null): void => {
    const option = index === null ? undefined : choices[index];
    setWanted(index ?? -1);
    onChange(option && startOf(option), fieldPathId.path);
  };
  const { SchemaField } = registry.fields;
  const below: unknown = uiSchema?.['ui:choices']?.[at];
  const isGroup = choice?.properties !== undefined || choice?.items !== undefined;
  const isPlain = choice !== undefined && !isGroup && choice.const === undefined;
  return (
    <Segments
      id={fieldPathId.$id}
      title={schema.title ?? name}
      hint={required ? 'required' : ''}
      description={schema.description}
      options={choices.map(nameOf)}
      chosen={at}
      canLeaveOut={!required}
      isLeftOut={isLeftOut}
      onChoose={choose}
    >
      {choice && choice.const === undefined && SchemaField && (
        <div class="nest">
          <SchemaField
            {...props}
            key={at}
            schema={{ ...choice, title: isGroup ? '' : nameOf(choice, at) }}
            uiSchema={{ ...(typeof below === 'object' ? below : {}), 'ui:options': { isBare: isGroup } }}
          />
        </div>
      )}
      {formData !== undefined && at < 0 && <JsonField {...props} />}
      {!isPlain && <Errors id={fieldPathId.$id} texts={rawErrors} />}
    </Segments>
  );
}

type Option = ReturnType<typeof choicesIn>[number];

/** Returns the name of an alternative: its title, its constant, the constant of a member, its type or its number. */
function nameOf(option: Option, at: number): string {
  if (typeof option.title === 'string' && option.title !== '') return option.title;
  const members = Object.values(option.properties ?? {});
  const constant = option.const ?? members.flatMap((part) => (typeof part === 'object' ? (part.const ?? []) : []))[0];
  if (constant !== undefined) return typeof constant === 'string' ? constant : JSON.stringify(constant);
  const word = typeWord(option.type);
  return word === '' || members.length > 0 ? `Choice ${at + 1}` : word.charAt(0).toUpperCase() + word.slice(1);
}

/** Shows a value that the schema fixes. If it may be left out, or the JSON has another value, it can be chosen. */
export function ConstField(props: FieldProps) {
  const { fieldPathId, formData, name, schema, uiSchema, required = false, rawErrors, onChange } = props;
  const { const: only } = schema;
  const isSet = formData !== undefined && JSON.stringify(formData) === JSON.stringify(only);
  if (isSet && uiSchema?.['ui:options']?.['isSaid']) return null;
  const title = schema.title ?? name;
  const errors = <Errors id={fieldPathId.$id} texts={rawErrors} />;
  if (!required || !isSet)
    return (
      <Segments
        id={fieldPathId.$id}
        title={title}
        hint={hintOf(schema, required)}
        description={schema.description}
        options={[typeof only === 'string' ? only : JSON.stringify(only)]}
        chosen={isSet ? 0 : -1}
        canLeaveOut={!required}
        isLeftOut={formData === undefined}
        onChoose={(at) => onChange(at === null ? undefined : only, fieldPathId.path)}
      >
        {errors}
      </Segments>
    );
  return (
    <div class="field">
      <div class="label-row">
        <span class="label">{title}</span>
        <span class="opt">{hintOf(schema, required)}</span>
      </div>
      {schema.description && <p class="hint">{schema.description}</p>}
    </div>
  );
}

/** Shows a part of the arguments as JSON text. */
export function JsonField({ fieldPathId, formData, name, schema, onChange, required, rawErrors }: FieldProps) {
  const [text, setText] = useState(formData === undefined ? '' : JSON.stringify(formData, null, 2));
  const [problem, setProblem] = useState<string | null>(null);
  const id = fieldPathId.$id;
  const write = (given: string): void => {
    setText(given);
    try {
      onChange(given.trim() === '' ? undefined : JSON.parse(given), fieldPathId.path);
      setProblem(null);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : 'This is not JSON.');
    }
  };
  return (
    <div class="field">
      <div class="label-row">
        <label for={id} class="label">
          {schema.title ?? name}
        </label>
        <span class="opt">JSON: the schema says more than a form can show{required ? ', required' : ''}</span>
      </div>
      <textarea
        class="in code"
        id={id}
        rows={3}
        spellcheck={false}
        value={text}
        aria-invalid={problem !== null || (rawErrors?.length ?? 0) > 0}
        onInput={(event) => write(event.currentTarget.value)}
      />
      {problem !== null ? <Fault text={problem} /> : <Errors id={id} texts={rawErrors} />}
    </div>
  );
}

type HiddenProps = {
  /** The value of a group of fields. */
  readonly value: unknown;
  /** The names that the group shows. */
  readonly shown: readonly string[];
  readonly faultsOf: (name: string) => readonly string[];
};

/** Names the members of a value that the form has no field for, because they are sent as well. */
export function HiddenMembers({ value, shown, faultsOf }: HiddenProps) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const hidden = Object.keys(value).filter((name) => !shown.includes(name));
  if (hidden.length === 0) return null;
  return (
    <div class="field">
      <p class="hint hint-icon">
        <Icon name="info" />
        <span>
          The arguments also have {hidden.join(', ')}. JSON shows {hidden.length === 1 ? 'it' : 'them'}.
        </span>
      </p>
      {hidden.flatMap((name) =>
        faultsOf(name).map((text) => <Fault key={name} text={`${name}: ${text}`} isAlert={false} />),
      )}
    </div>
  );
}
