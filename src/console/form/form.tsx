/** Shows a form for the JSON Schema of an action. This file is loaded when such a form is first shown. */
import RjsfForm from '@rjsf/core';
import {
  enumOptionsIndexForValue,
  enumOptionsValueForIndex,
  type ArrayFieldItemTemplateProps,
  type ArrayFieldTemplateProps,
  type BaseInputTemplateProps,
  type FieldTemplateProps,
  type ObjectFieldTemplateProps,
  type WidgetProps,
  type FieldProps,
} from '@rjsf/utils';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { syntaxFault, type ParamsFault } from '../invoke/checker.ts';
import { formNumberOf, formValueOf, numberTextOf, textOfForm } from './exact.ts';
import { Select, focusFirstField } from '../ui/dialogs.tsx';
import { Icon } from '../ui/icons.tsx';
import { Fault } from '../ui/payload.tsx';
import { errorSchemaOf, hintOf, typeWord } from './field-faults.ts';
import { validator } from './validator.ts';
import { choicesIn } from './fit.ts';
import { type FormSchema, choiceIn, isLike } from './form-schema.ts';
import type { ComponentChildren } from 'preact';

type SchemaFormProps = {
  readonly form: FormSchema;
  /** The value of the form as JSON text. */
  readonly text: string;
  readonly faults: readonly ParamsFault[];
  readonly onChange: (text: string) => void;
};

const FIELDS = { ChoiceField, ConstField, JsonField, NumberField };

/** Prevents the library from adding empty objects, and constants: `form-schema.ts` adds those that are needed. */
const DEFAULTS = { constAsDefaults: 'never', emptyObjectFields: 'skipEmptyDefaults' } as const;

/**
 * Shows a value as a form. Parts that a form cannot show are shown as fields of JSON text, so that nothing is hidden.
 */
export function SchemaForm({ form: { schema, uiSchema }, text, faults, onChange }: SchemaFormProps) {
  const extraErrors = useMemo(() => errorSchemaOf(faults), [faults]);
  const value = useMemo(() => formValueOf(text), [text]);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => focusFirstField(root.current), []);
  return (
    <div ref={root}>
      <RjsfForm
        schema={schema}
        uiSchema={uiSchema}
        formData={value}
        validator={validator}
        templates={TEMPLATES}
        widgets={WIDGETS}
        fields={FIELDS}
        extraErrors={extraErrors}
        experimental_defaultFormStateBehavior={DEFAULTS}
        idPrefix="argument"
        tagName="div"
        showErrorList={false}
        noHtml5Validate
        onChange={({ formData }) => onChange(textOfForm(formData ?? {}))}
      >
        <></>
      </RjsfForm>
    </div>
  );
}

// The layout of the form's fields, groups and lists.

function FieldTemplate(props: FieldTemplateProps) {
  const { id, label, schema, required = false, hidden, children, rawErrors = [], rawDescription, displayLabel } = props;
  if (hidden) return <div hidden>{children}</div>;
  // A group or list shows its title itself, as the legend of its fields.
  if (!displayLabel) return <>{children}</>;
  const isShort = schema.enum !== undefined || schema.type === 'integer' || schema.type === 'number';
  return (
    <div class={isShort ? 'field field-s' : 'field'}>
      <div class="label-row">
        <label for={id} class="label">
          {schema.title ?? label}
        </label>
        <span class="opt">{hintOf(schema, required)}</span>
      </div>
      {children}
      <Errors id={id} texts={rawErrors} />
      {rawDescription && <p class="hint">{rawDescription}</p>}
    </div>
  );
}

/** Shows a number field as a text field, because the library's own number field changes the digits that are typed. */
function NumberField(props: FieldProps) {
  const { StringField } = props.registry.fields;
  return StringField ? <StringField {...props} /> : null;
}

/** Matches the characters that browsers remove from the value of a text field. */
const NOT_HELD = /[\r\0]/;

/**
 * Shows a text field for texts and numbers. The value is kept exactly as typed: a number with its digits, and any text
 * that is not a number as text. The check against the schema reports what is wrong with it.
 */
function BaseInputTemplate(props: BaseInputTemplateProps) {
  const { id, schema, value, required = false, rawErrors = [], onChange } = props;
  const isNumber = schema.type === 'number' || schema.type === 'integer';
  if (!isNumber && typeof value === 'string' && NOT_HELD.test(value)) return <SpelledText {...props} />;
  const read = (text: string): unknown => {
    if (text === '') return required && !isNumber ? '' : undefined;
    return isNumber ? formNumberOf(text) : text;
  };
  const input = {
    class: 'in',
    id,
    required,
    autocomplete: 'off',
    spellcheck: false,
    value: isNumber ? numberTextOf(value) : String(value ?? ''),
    'aria-invalid': rawErrors.length > 0,
    'aria-describedby': rawErrors.length > 0 ? `${id}-error` : undefined,
    onInput: ({ currentTarget: { value: text } }: { readonly currentTarget: { readonly value: string } }) =>
      onChange(read(text)),
  };
  if (isNumber) return <input type="text" inputMode="decimal" {...input} />;
  // A field of one line would remove the line breaks of pasted text.
  return <textarea {...input} class="in in-text" rows={1} />;
}

/** Shows a text as a JSON string, because it contains characters that a text field cannot contain. */
function SpelledText({ id, value, onChange }: BaseInputTemplateProps) {
  const [typed, setTyped] = useState(JSON.stringify(value));
  const write = (text: string): void => {
    setTyped(text);
    const read: unknown = syntaxFault(text) === null ? JSON.parse(text) : text;
    if (typeof read === 'string') onChange(read);
  };
  return (
    <>
      <textarea
        class="in code"
        id={id}
        rows={2}
        value={typed}
        onInput={({ currentTarget }) => write(currentTarget.value)}
      />
      <p class="hint">As JSON: this text has characters that a field cannot hold.</p>
    </>
  );
}

function ObjectFieldTemplate(props: ObjectFieldTemplateProps) {
  const { fieldPathId, title, schema, uiSchema, required = false, properties, formData, errorSchema } = props;
  const content = properties.filter(({ hidden }) => !hidden).map((property) => property.content);
  const fields = (
    <>
      {content}
      <HiddenMembers
        value={formData}
        shown={properties.map(({ name }) => name)}
        faultsOf={(name) => errorSchema?.[name]?.__errors ?? []}
      />
    </>
  );
  if (fieldPathId.path.length === 0) return <div class="form">{fields}</div>;
  if (uiSchema?.['ui:options']?.['isBare']) return fields;
  return (
    <fieldset class="field" id={fieldPathId.$id}>
      <legend class="label">
        {schema.title ?? title} <span class="opt">{required ? 'required' : ''}</span>
      </legend>
      {schema.description && <p class="hint">{schema.description}</p>}
      <div class="nest">{fields}</div>
    </fieldset>
  );
}

function ArrayFieldTemplate(props: ArrayFieldTemplateProps) {
  const { fieldPathId, title, schema, required = false, items, canAdd, onAddClick, rawErrors = [] } = props;
  const list = useRef<HTMLDivElement>(null);
  const wasAdded = useRef(false);
  useEffect(() => {
    if (!wasAdded.current) return;
    wasAdded.current = false;
    const entries = list.current?.querySelectorAll(':scope > .list-item') ?? [];
    [...entries].at(-1)?.querySelector<HTMLElement>('input, textarea, select')?.focus();
  }, [items.length]);
  const add = (): void => {
    wasAdded.current = true;
    onAddClick();
  };
  return (
    <fieldset class="field" id={fieldPathId.$id}>
      <legend class="sr">{schema.title ?? title}</legend>
      <div class="label-row">
        <span class="label" aria-hidden="true">
          {schema.title ?? title}
        </span>
        <span class="opt">{hintOf(schema, required)}</span>
      </div>
      {schema.description && <p class="hint">{schema.description}</p>}
      <div class="list-in" ref={list}>
        {items}
        {canAdd && (
          <div>
            <button class="btn btn-quiet btn-s" type="button" onClick={add}>
              <Icon name="plus" />
              Add to {schema.title ?? title}
            </button>
          </div>
        )}
      </div>
      <Errors id={fieldPathId.$id} texts={rawErrors} />
    </fieldset>
  );
}

function ArrayFieldItemTemplate({ children, index, buttonsProps }: ArrayFieldItemTemplateProps) {
  return (
    <div class="list-item">
      <div class="list-item-field">{children}</div>
      {buttonsProps.hasRemove && (
        <button
          class="btn btn-icon btn-quiet"
          type="button"
          aria-label={`Remove entry ${index + 1}`}
          onClick={() => buttonsProps.onRemoveItem()}
        >
          <Icon name="close" />
        </button>
      )}
    </div>
  );
}

const nothing = (): null => null;

const TEMPLATES = {
  FieldTemplate,
  BaseInputTemplate,
  ObjectFieldTemplate,
  ArrayFieldTemplate,
  ArrayFieldItemTemplate,
  FieldErrorTemplate: nothing,
  ErrorListTemplate: nothing,
  DescriptionFieldTemplate: nothing,
};

const choiceAt = (text: string, at: number) => ({ value: at, text });

function SelectWidget({ id, options, value, required, rawErrors = [], onChange }: WidgetProps) {
  const { enumOptions = [] } = options;
  const chosen = enumOptionsIndexForValue(value, enumOptions, false);
  const mayBeNone = !required || chosen === undefined;
  const none = { value: '', text: required ? 'Choose one' : LEFT_OUT };
  return (
    <Select
      id={id}
      required={required}
      value={chosen === undefined ? '' : String(chosen)}
      aria-invalid={rawErrors.length > 0}
      aria-describedby={rawErrors.length > 0 ? `${id}-error` : undefined}
      choices={[...(mayBeNone ? [none] : []), ...enumOptions.map(({ label }, at) => choiceAt(label, at))]}
      onChoose={(at) => onChange(enumOptionsValueForIndex(at, enumOptions, undefined))}
    />
  );
}

/** Shows a boolean. An absent value stays absent until the user chooses one. */
function CheckboxWidget({ id, value, required, label, schema, rawErrors, onChange }: WidgetProps) {
  const title = schema.title ?? label;
  if (!required)
    return (
      <Segments
        id={id}
        title={title}
        hint={hintOf(schema, false)}
        description={schema.description}
        options={['Yes', 'No']}
        chosen={value === true ? 0 : value === false ? 1 : -1}
        canLeaveOut
        isLeftOut={value === undefined}
        onChoose={(at) => onChange(at === null ? undefined : at === 0)}
      >
        <Errors id={id} texts={rawErrors} />
      </Segments>
    );
  return (
    <div class="field">
      <label class="check">
        <input
          type="checkbox"
          id={id}
          checked={value === true}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
        <span>{title}</span>
      </label>
      {schema.description && <p class="hint">{schema.description}</p>}
      <Errors id={id} texts={rawErrors} />
    </div>
  );
}

function TextareaWidget({ id, value, required, rawErrors = [], onChange }: WidgetProps) {
  return (
    <textarea
      class="in"
      id={id}
      rows={4}
      required={required}
      value={typeof value === 'string' ? value : ''}
      aria-invalid={rawErrors.length > 0}
      aria-describedby={rawErrors.length > 0 ? `${id}-error` : undefined}
      onInput={(event) =>
        onChange(event.currentTarget.value === '' && !required ? undefined : event.currentTarget.value)
      }
    />
  );
}

const WIDGETS = { SelectWidget, CheckboxWidget, TextareaWidget, RadioWidget: SelectWidget };

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
  /** The index of the chosen option; -1 if none is chosen. */
  readonly chosen: number;
  /** Whether there is a further option that leaves the value out. It is the chosen one if `isLeftOut` is true. */
  readonly canLeaveOut: boolean;
  readonly isLeftOut: boolean;
  /** Called with the index of the chosen option, or with null for leaving the value out. */
  readonly onChoose: (at: number | null) => void;
  readonly children?: ComponentChildren;
};

/** The maximum total length of options that are shown side by side, in characters. Longer ones are shown as a menu. */
const SIDE_BY_SIDE = 44;

/** Shows a choice: its options side by side if they are few and short, and otherwise as a menu. */
function Segments(props: SegmentsProps) {
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
        <div class="switch seg">
          {all.map((text, index) => (
            <label key={`${index} ${text}`}>
              <input type="radio" name={id} checked={index === at} onChange={() => choose(index)} />
              {text}
            </label>
          ))}
        </div>
      ) : (
        <Select
          id={`${id}-choice`}
          aria-label={String(title)}
          value={at}
          choices={[...(at < 0 ? [{ value: -1, text: 'Choose one' }] : []), ...all.map(choiceAt)]}
          onChoose={(index) => choose(Number(index))}
        />
      )}
      {children}
      {description && <p class="hint">{description}</p>}
    </fieldset>
  );
}

const LEFT_OUT = 'Left out';

/** Shows a choice among alternatives, and below it the fields of the chosen one. */
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

/** Returns the name of an alternative: its title, its constant, the constant of a member, its type, or its number. */
function nameOf(option: Option, at: number): string {
  if (typeof option.title === 'string' && option.title !== '') return option.title;
  const members = Object.values(option.properties ?? {});
  const constant = option.const ?? members.flatMap((part) => (typeof part === 'object' ? (part.const ?? []) : []))[0];
  if (constant !== undefined) return typeof constant === 'string' ? constant : JSON.stringify(constant);
  const word = typeWord(option.type);
  return word === '' || members.length > 0 ? `Choice ${at + 1}` : word.charAt(0).toUpperCase() + word.slice(1);
}

/**
 * Shows a value that the schema fixes. It is a choice if the value may be left out, or if the JSON has another value.
 */
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
  const [text, setText] = useState(formData === undefined ? '' : textOfForm(formData));
  const [problem, setProblem] = useState<string | null>(null);
  const id = fieldPathId.$id;
  const write = (given: string): void => {
    setText(given);
    try {
      onChange(given.trim() === '' ? undefined : formValueOf(given), fieldPathId.path);
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
  /** The names of the members that the group shows. */
  readonly shown: readonly string[];
  readonly faultsOf: (name: string) => readonly string[];
};

/** Names the members of a value for which the form has no field. They must not be hidden, because they are sent too. */
function HiddenMembers({ value, shown, faultsOf }: HiddenProps) {
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
