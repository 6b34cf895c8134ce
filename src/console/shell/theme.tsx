/** Shows the choice of a theme and stores it. The stylesheet reads the state of the radio buttons. */
import { useState } from 'preact/hooks';
import { keep, recall } from '../browser-storage.ts';
import { Switch } from '../ui/dialogs.tsx';
import { Icon, type IconName } from '../ui/icons.tsx';

const KEY = 'callboard:theme';
type Theme = 'system' | 'light' | 'dark';

const THEMES: readonly { readonly theme: Theme; readonly name: string; readonly icon: IconName }[] = [
  { theme: 'system', name: 'As the system', icon: 'system' },
  { theme: 'light', name: 'Light', icon: 'sun' },
  { theme: 'dark', name: 'Dark', icon: 'moon' },
];

export function ThemeSwitch() {
  const [chosen, setChosen] = useState(() => themeOf(recall('local', KEY)));
  const choose = (theme: Theme): void => {
    setChosen(theme);
    keep('local', KEY, theme);
  };
  const choices = THEMES.map(({ theme, name, icon }) => ({
    value: theme,
    id: `theme-${theme}`,
    title: name,
    text: [<span class="sr">{name}</span>, <Icon name={icon} />],
  }));
  return <Switch legend="Theme" name="theme" choices={choices} chosen={chosen} onChoose={choose} />;
}

function themeOf(name: string | null): Theme {
  return THEMES.find(({ theme }) => theme === name)?.theme ?? 'system';
}
