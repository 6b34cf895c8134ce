/** Shows the choice of a theme and stores it. The stylesheet reads the checked radio button. */
import { useState } from 'preact/hooks';
import { Icon, type IconName } from '../ui/icon.tsx';

const KEY = 'callboard:theme';
type Theme = 'system' | 'light' | 'dark';

const THEMES: readonly { readonly theme: Theme; readonly name: string; readonly icon: IconName }[] = [
  { theme: 'system', name: 'As the system', icon: 'system' },
  { theme: 'light', name: 'Light', icon: 'sun' },
  { theme: 'dark', name: 'Dark', icon: 'moon' },
];

export function ThemeSwitch() {
  const [chosen, setChosen] = useState<Theme>(read);
  const choose = (theme: Theme): void => {
    setChosen(theme);
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // The browser blocks storage, so the choice lasts as long as the page.
    }
  };
  return (
    <fieldset class="switch">
      <legend class="sr">Theme</legend>
      {THEMES.map(({ theme, name, icon }) => (
        <label key={theme} title={name}>
          <input
            type="radio"
            name="theme"
            id={`theme-${theme}`}
            checked={chosen === theme}
            onChange={() => choose(theme)}
          />
          <span class="sr">{name}</span>
          <Icon name={icon} />
        </label>
      ))}
    </fieldset>
  );
}

function read(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return THEMES.find(({ theme }) => theme === kept)?.theme ?? 'system';
  } catch {
    return 'system';
  }
}
