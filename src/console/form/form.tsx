/** Shows a form made from the JSON Schema of an action. The file is loaded when an action with a schema is opened. */
import RjsfForm from '@rjsf/core';
import { useMemo } from 'preact/hooks';
import type { ParamsFault } from '../invoke/checker.ts';
import type { FormSchema } from './form-schema.ts';
import { JsonField } from './json-field.tsx';
import { errorSchemaOf } from './faults.ts';
import { TEMPLATES } from './templates.tsx';
import { validator } from './validator.ts';
import { WIDGETS } from './widgets.tsx';

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
