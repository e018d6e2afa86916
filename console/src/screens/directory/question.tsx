/** Whose login is tested. The password leaves the field as the test begins. */

import { useState } from 'react';
import type { DirectoryTestRequest } from '../../../../client/index.ts';
import { directory as text } from '../../text/en/directory.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { SectionHead } from '../../ui/page.tsx';
import styles from './directory.module.css';

interface QuestionProps {
  readonly isRunning: boolean;
  readonly onRun: (request: DirectoryTestRequest) => void;
}

export function Question({ isRunning, onRun }: QuestionProps) {
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const [directory, setDirectory] = useState('');
  const missing = username === '' ? text.needsName : undefined;
  return (
    <form
      noValidate
      className={styles.form}
      autoComplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        if (missing !== undefined || isRunning) return;
        setPassword('');
        onRun({
          username,
          ...(password === '' ? {} : { password }),
          ...(directory.trim() === '' ? {} : { directory: directory.trim() }),
        });
      }}
    >
      <SectionHead title={text.test} small={text.testSays} />
      <TextField
        label={text.username}
        value={username}
        onChange={setUsername}
        hint={text.usernameHint}
        autoComplete="off"
        isRequired
      />
      <TextField
        label={text.password}
        value={password}
        onChange={setPassword}
        hint={text.passwordHint}
        type="password"
        autoComplete="one-time-code"
        isOptional
      />
      <TextField
        label={text.name}
        value={directory}
        onChange={setDirectory}
        hint={text.nameHint}
        autoComplete="off"
        isOptional
      />
      <Button tone="primary" type="submit" isPending={isRunning} disabledReason={missing}>
        {isRunning ? text.running : text.run}
      </Button>
    </form>
  );
}
