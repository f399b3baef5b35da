// Search in pages that are opened as files: there browsers start no worker, so an invisible frame runs its script.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const { contentWindow, contentDocument } = this.frame;
      contentDocument.open();
      contentDocument.close();
      contentWindow.postMessage = (data) => {
        setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
      };
      this.begun = new Promise((resolve) => {
        const script = contentDocument.createElement("script");
        script.src = new URL(url, location.href).href;
        script.onload = resolve;
        contentDocument.documentElement.append(script);
      });
    }
    postMessage(data) {
      this.begun.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
