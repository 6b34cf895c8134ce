/** Shows a form made from the JSON Schema of an action. The file is loaded when an action with a schema is opened. */
import RjsfForm from '@rjsf/core';
import {
  enumOptionsIndexForValue,
  enumOptionsValueForIndex,
  type ArrayFieldItemTemplateProps,
  type ArrayFieldTemplateProps,
  type BaseInputTemplateProps,
  type FieldProps,
  type FieldTemplateProps,
  type MultiSchemaFieldTemplateProps,
  type ObjectFieldTemplateProps,
  type WidgetProps,
} from '@rjsf/utils';
import { useMemo, useState } from 'preact/hooks';
import type { ParamsFault } from '../invoke/checker.ts';
import { Fault, Icon } from '../ui/values.tsx';
import { errorSchemaOf, hintOf, validator, type FormSchema } from './form-schema.ts';

type SchemaFormProps = {
  readonly form: FormSchema;
  /** The value of the form, as JSON text. */
  readonly text: string;
  readonly faults: readonly ParamsFault[];
  readonly onChange: (text: string) => void;
};

const FIELDS = { JsonField };

/** Shows the value as a form. Parts that a form cannot show become fields of JSON text, so that nothing is hidden. */
export function SchemaForm({ form: { schema, uiSchema }, text, faults, onChange }: SchemaFormProps) {
  const extraErrors = useMemo(() => errorSchemaOf(faults), [faults]);
  const value: unknown = JSON.parse(text);
  return (
    <RjsfForm
      schema={schema}
      uiSchema={uiSchema}
      formData={value}
      validator={validator}
      templates={TEMPLATES}
      widgets={WIDGETS}
      fields={FIELDS}
      extraErrors={extraErrors}
      idPrefix="argument"
      tagName="div"
      showErrorList={false}
      noHtml5Validate
      onChange={({ formData }) => onChange(JSON.stringify(formData ?? {}, null, 2))}
    >
      <></>
    </RjsfForm>
  );
}

function JsonField({ fieldPathId, formData, name, schema, onChange, required }: FieldProps) {
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
        aria-invalid={problem !== null}
        onInput={(event) => write(event.currentTarget.value)}
      />
      {problem !== null && <Fault text={problem} />}
    </div>
  );
}

// Defines the layout of the form's fields, groups and lists.

function FieldTemplate(props: FieldTemplateProps) {
  const { id, label, schema, required = false, hidden, children, rawErrors = [], rawDescription, displayLabel } = props;
  if (hidden) return <div hidden>{children}</div>;
  // Groups and lists show their own title as the legend of their fields.
  if (!displayLabel) return <>{children}</>;
  return (
    <div class="field">
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

function Errors({ id, texts }: { readonly id: string; readonly texts: readonly string[] }) {
  if (texts.length === 0) return null;
  return (
    <div id={`${id}-error`}>
      {[...new Set(texts)].map((text) => (
        <Fault key={text} text={text} isAlert={false} />
      ))}
    </div>
  );
}

/**
 * Shows a text field for texts and numbers. Typed text that is a number becomes a number. Any other text is kept as it
 * is, and the check against the schema explains what is wrong.
 */
function BaseInputTemplate({ id, schema, value, required = false, rawErrors = [], onChange }: BaseInputTemplateProps) {
  const isNumber = schema.type === 'number' || schema.type === 'integer';
  const [typed, setTyped] = useState<string | null>(null);
  const read = (text: string): unknown => {
    if (text === '') return required && !isNumber ? '' : undefined;
    return isNumber && Number.isFinite(Number(text)) ? Number(text) : text;
  };
  // Keeps typed text such as `1.`, which is not a number yet, unless the value was changed elsewhere.
  const shown = typed !== null && read(typed) === value ? typed : (value ?? '');
  return (
    <input
      class="in"
      id={id}
      type="text"
      inputMode={isNumber ? 'decimal' : 'text'}
      autocomplete="off"
      required={required}
      value={String(shown)}
      aria-invalid={rawErrors.length > 0}
      aria-describedby={rawErrors.length > 0 ? `${id}-error` : undefined}
      onInput={({ currentTarget: { value: text } }) => {
        setTyped(text);
        onChange(read(text));
      }}
    />
  );
}

function ObjectFieldTemplate({ fieldPathId, title, schema, required = false, properties }: ObjectFieldTemplateProps) {
  const content = properties.filter(({ hidden }) => !hidden).map((property) => property.content);
  if (fieldPathId.path.length === 0) return <div class="form">{content}</div>;
  return (
    <fieldset class="field" id={fieldPathId.$id}>
      <legend class="label">
        {schema.title ?? title} <span class="opt">{required ? 'required' : ''}</span>
      </legend>
      {schema.description && <p class="hint">{schema.description}</p>}
      <div class="nest">{content}</div>
    </fieldset>
  );
}

function ArrayFieldTemplate(props: ArrayFieldTemplateProps) {
  const { fieldPathId, title, schema, required = false, items, canAdd, onAddClick, rawErrors = [] } = props;
  return (
    <fieldset class="field" id={fieldPathId.$id}>
      <legend class="label">
        {schema.title ?? title} <span class="opt">{hintOf(schema, required)}</span>
      </legend>
      {schema.description && <p class="hint">{schema.description}</p>}
      <div class="list-in">
        {items}
        {canAdd && (
          <div>
            <button class="btn btn-quiet btn-s" type="button" onClick={() => onAddClick()}>
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

function MultiSchemaFieldTemplate({ selector, optionSchemaField }: MultiSchemaFieldTemplateProps) {
  return (
    <div class="alternatives">
      {selector}
      {optionSchemaField}
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
  MultiSchemaFieldTemplate,
  FieldErrorTemplate: nothing,
  ErrorListTemplate: nothing,
  DescriptionFieldTemplate: nothing,
};

function SelectWidget({ id, options, value, required, rawErrors = [], onChange }: WidgetProps) {
  const { enumOptions = [] } = options;
  const chosen = enumOptionsIndexForValue(value, enumOptions, false);
  return (
    <select
      class="in"
      id={id}
      required={required}
      value={chosen === undefined ? '' : String(chosen)}
      aria-invalid={rawErrors.length > 0}
      aria-describedby={`${id}-error`}
      onChange={(event) => onChange(enumOptionsValueForIndex(event.currentTarget.value, enumOptions, undefined))}
    >
      {(!required || chosen === undefined) && <option value="">{required ? 'Choose one' : 'Left out'}</option>}
      {enumOptions.map(({ label, value: option }, at) => (
        <option key={String(option)} value={String(at)}>
          {label}
        </option>
      ))}
    </select>
  );
}

/** Shows a boolean. A value that is absent stays absent until the user chooses one. */
function CheckboxWidget({ id, value, required, label, schema, onChange }: WidgetProps) {
  if (!required)
    return (
      <select
        class="in"
        id={id}
        value={value === undefined ? '' : String(value)}
        onChange={({ currentTarget: { value: chosen } }) => onChange(chosen === '' ? undefined : chosen === 'true')}
      >
        <option value="">Left out</option>
        <option value="true">Yes</option>
        <option value="false">No</option>
      </select>
    );
  return (
    <label class="check">
      <input
        type="checkbox"
        id={id}
        checked={value === true}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{schema.title ?? label}</span>
    </label>
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
      aria-describedby={`${id}-error`}
      onInput={(event) =>
        onChange(event.currentTarget.value === '' && !required ? undefined : event.currentTarget.value)
      }
    />
  );
}

const WIDGETS = { SelectWidget, CheckboxWidget, TextareaWidget, RadioWidget: SelectWidget };
