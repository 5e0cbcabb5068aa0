// The one way in which markup is made: a template that builds elements, so that data is only ever text.
import { h } from "preact";
import htm from "htm";

export const html = htm.bind(h);
