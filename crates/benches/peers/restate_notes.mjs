// A keyed durable write with Restate: one note in the state of its user. PORT says where to listen.
import * as restate from "@restatedev/restate-sdk";

const notes = restate.object({
  name: "notes",
  handlers: {
    add: async (ctx, { text }) => {
      const id = ctx.rand.uuidv4();
      ctx.set(id, { text });
      return { note_id: id };
    },
  },
});

restate.endpoint().bind(notes).listen(Number(process.env.PORT));
