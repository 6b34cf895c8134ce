/** Shows a form made from the JSON Schema of an action. This file is loaded when such a form is first shown. */
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
} from '@rjsf/utils';
import { useMemo, useState } from 'preact/hooks';
import type { ParamsFault } from '../invoke/checker.ts';
import { Icon } from '../ui/values.tsx';
import { ChoiceField, ConstField, Errors, HiddenMembers, JsonField, Segments } from './choice.tsx';
import { errorSchemaOf, hintOf, validator, type FormSchema } from './form-schema.ts';

type SchemaFormProps = {
  readonly form: FormSchema;
  /** The value of the form, as JSON text. */
  readonly text: string;
  readonly faults: readonly ParamsFault[];
  readonly onChange: (text: string) => void;
};

const FIELDS = { ChoiceField, ConstField, JsonField };

/** Keeps the library from adding constants (`form-schema.ts` adds those that are needed) and empty objects. */
const DEFAULTS = { constAsDefaults: 'never', emptyObjectFields: 'skipEmptyDefaults' } as const;

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
      experimental_defaultFormStateBehavior={DEFAULTS}
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

// Defines the layout of the form's fields, groups and lists.

function FieldTemplate(props: FieldTemplateProps) {
  const { id, label, schema, required = false, hidden, children, rawErrors = [], rawDescription, displayLabel } = props;
  if (hidden) return <div hidden>{children}</div>;
  // Groups and lists show their own title as the legend of their fields.
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
      aria-describedby={rawErrors.length > 0 ? `${id}-error` : undefined}
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
