/**
 * Shows the form of one call: its arguments and time limits, the checks of the input, and the calls that this form has
 * sent.
 */
import { useState } from 'preact/hooks';
import { CopyAction } from '../ui/id.tsx';
import { shortId } from '../ui/format.ts';
import { ArgumentsEditor } from './arguments.tsx';
import { Budgets, DEFAULT_BUDGETS, type BudgetValues } from './budgets.tsx';
import type { ParamsFault } from './checker.ts';
import type { TargetAction } from './target.ts';
import { curlLine, commandLine } from './lines.ts';
import { Preflight } from './preflight.tsx';
import { createCommandId, sendCall, type Sent } from './sending.ts';
import { SentCalls } from './sent.tsx';
import { useCheck } from './use-check.ts';

type CallFormProps = {
  readonly userId: string;
  readonly clientId: string;
  readonly actionName: string;
  /** The action to invoke. Null: the client does not advertise it at present. */
  readonly action: TargetAction | null;
  readonly onBack: () => void;
};

export function CallForm({ userId, clientId, actionName, action, onBack }: CallFormProps) {
  const [params, setParams] = useState('{}');
  const [budgets, setBudgets] = useState<BudgetValues>(DEFAULT_BUDGETS);
  const [commandId, setCommandId] = useState(() => createCommandId(Date.now()));
  const [sent, setSent] = useState<readonly Sent[]>([]);
  const schema = action?.schema ?? null;
  const { faults, unchecked } = useCheck(schema, params);
  const broken = faults.some(({ syntax }) => syntax);
  const call = { userId, clientId, action: actionName, commandId, ...budgets };
  const submit = (): void => {
    if (broken) return;
    // `call` keeps the id that it was made with. The new id is for the next call.
    setCommandId(createCommandId(Date.now()));
    void sendCall(call, params, (latest) =>
      setSent((was) => [latest, ...was.filter((other) => other.commandId !== latest.commandId)]),
    );
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    submit();
  };
  return (
    <>
      <div class="drawer-body" onKeyDown={onKeyDown}>
        <section aria-label="Arguments">
          <ArgumentsEditor schema={schema} text={params} faults={faults} unchecked={unchecked} onChange={setParams} />
          <Budgets values={budgets} onChange={setBudgets} />
        </section>
        <section aria-label="What the relay says">
          <Preflight input={call} params={params} faults={faults} />
          <SentCalls sent={sent} />
        </section>
      </div>
      <footer class="drawer-foot">
        <p>
          Its id will be <code>{shortId(commandId)}</code>: if the answer is lost, the command with this id is awaited
          and not sent again.
        </p>
        <button class="btn" type="button" onClick={onBack}>
          Another action
        </button>
        <CopyAction text={() => curlLine({ ...call, params })}>Copy as curl</CopyAction>
        <CopyAction text={() => commandLine({ ...call, params })}>Copy as command line</CopyAction>
        <button class="btn btn-primary" type="button" onClick={submit} aria-disabled={broken}>
          {sendLabel(faults)}
        </button>
      </footer>
    </>
  );
}

/**
 * Returns the label of the button. Arguments that do not fit the schema may be sent, because the client decides. Text
 * that is not JSON cannot be sent.
 */
function sendLabel(faults: readonly ParamsFault[]): string {
  if (faults.some(({ syntax }) => syntax)) return 'Correct the JSON to invoke';
  return faults.length === 0 ? 'Invoke' : 'Invoke anyway';
}
