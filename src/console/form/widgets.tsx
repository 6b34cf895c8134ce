/** Shows the controls of the form, such as check boxes and choices. */
import { enumOptionsIndexForValue, enumOptionsValueForIndex, type WidgetProps } from '@rjsf/utils';

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

export const WIDGETS = { SelectWidget, CheckboxWidget, TextareaWidget, RadioWidget: SelectWidget };
