/** Defines the layout of the form's fields, groups and lists. */
import type {
  ArrayFieldItemTemplateProps,
  ArrayFieldTemplateProps,
  BaseInputTemplateProps,
  FieldTemplateProps,
  MultiSchemaFieldTemplateProps,
  ObjectFieldTemplateProps,
} from '@rjsf/utils';
import { useState } from 'preact/hooks';
import { Icon } from '../ui/icon.tsx';
import { hintOf } from './hint.ts';

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
        <p key={text} class="err">
          <Icon name="warn" />
          {text}
        </p>
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

export const TEMPLATES = {
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
