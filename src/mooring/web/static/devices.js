// Devices: those of a node, and those that a pod has or did not get.
import { html } from "mooring/html";
import { Few } from "mooring/parts";
import { podLink } from "mooring/route";
import { count } from "mooring/words";

// What a node has at the end of the run, whichever moment is looked at.
export function NodeDevices({ cluster, node }) {
  const devices = cluster.devicesOf(node);
  if (!devices.length) return null;
  return html`<section class="devices" aria-labelledby="devices-title">
    <h3 id="devices-title">${count(devices.length, "device")}, at the end</h3>
    <ul>${devices.map(
      (each) => html`<li class=${each.state.replace(" ", "-")}>
      <span class="name" title=${each.classes.join(", ")}>${each.name.split("/").pop()}</span>
      <span class="quiet">${each.classes.join(", ")}</span>
      <span>${each.holders.length ? each.holders.map((holder) => html`<${Holder} cluster=${cluster} holder=${holder} />`) : each.state}</span></li>`,
    )}</ul>
  </section>`;
}

function Holder({ cluster, holder }) {
  const pods = holder.pods.map((pod) => cluster.podKey(pod));
  return html`<span class="holder">${
    pods.length ? pods.map((key) => html`<a href=${podLink(key)}>${key}</a> `) : `claim ${holder.claim}`
  }${holder.share && html`<span class="quiet"> ${holder.share}</span>`}</span>`;
}

export function PodDevices({ devices }) {
  const { held, refused, lookedAt } = devices;
  if (!held.length && !refused.length) return null;
  return html`<section class="refusals pod-devices" aria-labelledby="pod-devices-title">
    <h2 id="pod-devices-title">${held.length ? "Devices" : "Devices that it did not get"}</h2>
    <ul>
      ${held.map(
        (each) => html`<li><span class="name">${each.device}</span>
        <span class="why">request ${each.request} of claim ${each.claim}</span>
        <span></span><span class="numbers">${each.share ?? ""}</span></li>`,
      )}
      ${refused.map(
        (each) => html`<li><span class="name">${each.request ? `${each.claim}: ${each.request}` : "a pool"}</span>
        <span class="why">${each.reason}${each.detail && `: ${each.detail}`} <${Few} items=${each.devices} most=${2} /></span>
        <span></span><span class="numbers">${count(each.count, "device")}</span></li>`,
      )}
    </ul>
    ${refused.length > 0 && html`<p class="quiet">Looked at on ${count(lookedAt, "node")}.</p>`}
  </section>`;
}
