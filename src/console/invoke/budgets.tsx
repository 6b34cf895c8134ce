/** Shows the choices of how long a call may wait, and for which stage of the command. */
import type { WaitStage } from '../../generated/console.ts';

export type BudgetValues = {
  readonly respondWithinMs: number;
  readonly connectWithinMs: number;
  readonly waitFor: WaitStage;
};

export const DEFAULT_BUDGETS: BudgetValues = { respondWithinMs: 30_000, connectWithinMs: 0, waitFor: 'COMPLETED' };

const WAITS: readonly { readonly value: WaitStage; readonly text: string }[] = [
  { value: 'COMPLETED', text: 'the end' },
  { value: 'ACKNOWLEDGED', text: 'receipt by the client' },
  { value: 'ADMITTED', text: 'admission only' },
];

type BudgetsProps = { readonly values: BudgetValues; readonly onChange: (values: BudgetValues) => void };

export function Budgets({ values, onChange }: BudgetsProps) {
  const seconds = (event: { readonly currentTarget: HTMLInputElement }): number =>
    Math.round(Math.max(0, event.currentTarget.valueAsNumber || 0) * 1000);
  return (
    <details class="budgets">
      <summary>
        Waits {values.respondWithinMs / 1000} s for {WAITS.find(({ value }) => value === values.waitFor)?.text}, and{' '}
        {values.connectWithinMs / 1000} s for a client that is away
      </summary>
      <div class="pair">
        <div class="field">
          <label for="respond-within">Time to answer, seconds</label>
          <input
            class="in"
            id="respond-within"
            type="number"
            min="0"
            step="any"
            value={values.respondWithinMs / 1000}
            onInput={(event) => onChange({ ...values, respondWithinMs: seconds(event) })}
          />
        </div>
        <div class="field">
          <label for="connect-within">Time to connect, seconds</label>
          <input
            class="in"
            id="connect-within"
            type="number"
            min="0"
            step="any"
            value={values.connectWithinMs / 1000}
            onInput={(event) => onChange({ ...values, connectWithinMs: seconds(event) })}
          />
        </div>
        <div class="field">
          <label for="wait-for">Wait for</label>
          <select
            class="in"
            id="wait-for"
            value={values.waitFor}
            onChange={(event) => {
              const chosen = WAITS.find(({ value }) => value === event.currentTarget.value);
              if (chosen) onChange({ ...values, waitFor: chosen.value });
            }}
          >
            {WAITS.map(({ value, text }) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </div>
      </div>
    </details>
  );
}
