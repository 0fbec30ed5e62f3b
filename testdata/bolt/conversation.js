// An app on Slack's own framework, against a local workspace: it answers a message in its thread, a command through
// its response URL, a button by changing the message, and a modal first with an error and then with a message.
// The people it talks with are played by the Go test that starts it.
'use strict';

const { App, LogLevel } = require('@slack/bolt');

const app = new App({
  token: process.env.BOT_TOKEN,
  appToken: process.env.APP_TOKEN,
  socketMode: true,
  logLevel: LogLevel.WARN,
  clientOptions: { slackApiUrl: process.env.API_URL },
});

const text = (s) => ({ type: 'plain_text', text: s });

app.message('hello', async ({ message, say }) => {
  await say({
    thread_ts: message.thread_ts ?? message.ts,
    text: `hello <@${message.user}>`,
    blocks: [
      { type: 'section', text: { type: 'mrkdwn', text: `hello <@${message.user}>` } },
      { type: 'actions', elements: [{ type: 'button', action_id: 'go', text: text('Go'), value: 'fast' }] },
    ],
  });
});

app.event('app_mention', async ({ event, say }) => {
  await say({ thread_ts: event.ts, text: 'mentioned' });
});

app.command('/agent', async ({ command, ack, respond, client }) => {
  await ack();
  if (command.text !== 'form') {
    await respond(`you said ${command.text}`);
    return;
  }
  await client.views.open({
    trigger_id: command.trigger_id,
    view: {
      type: 'modal',
      callback_id: 'form',
      private_metadata: command.channel_id,
      title: text('New agent'),
      submit: text('Create'),
      blocks: [{
        type: 'input', block_id: 'name', label: text('Name'),
        element: { type: 'plain_text_input', action_id: 'value' },
      }],
    },
  });
});

app.action('go', async ({ ack, action, body, client }) => {
  await ack();
  await client.chat.update({ channel: body.channel.id, ts: body.message.ts, text: `gone ${action.value}`, blocks: [] });
});

app.view('form', async ({ ack, view, body, client }) => {
  const name = view.state.values.name.value.value;
  if (/\s/.test(name)) {
    await ack({ response_action: 'errors', errors: { name: 'a name has no spaces' } });
    return;
  }
  await ack();
  await client.chat.postMessage({ channel: view.private_metadata, text: `${name} by <@${body.user.id}>` });
});

app.shortcut('session_menu', async ({ ack, shortcut, client }) => {
  await ack();
  await client.reactions.add({ channel: shortcut.channel.id, timestamp: shortcut.message_ts, name: 'eyes' });
});

app.event('app_home_opened', async ({ event, client }) => {
  await client.views.publish({
    user_id: event.user,
    view: { type: 'home', blocks: [{ type: 'section', text: { type: 'mrkdwn', text: 'home' } }] },
  });
});

app.error(async (error) => {
  console.error(error);
  process.exit(1);
});

app.start().catch((error) => {
  console.error(error);
  process.exit(1);
});
