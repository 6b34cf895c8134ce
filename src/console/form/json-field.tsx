/** Shows a part of the arguments that a form cannot show, as a field of JSON text. */
import type { FieldProps } from '@rjsf/utils';
import { useState } from 'preact/hooks';
import { Icon } from '../ui/icon.tsx';

export function JsonField({ fieldPathId, formData, name, schema, onChange, required }: FieldProps) {
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
      {problem !== null && (
        <p class="err" role="alert">
          <Icon name="warn" />
          {problem}
        </p>
      )}
    </div>
  );
}
