// The module that CloudFormation adds to inline Node.js code with require('cfn-response'): it answers a custom
// resource. Its interface is that of the CloudFormation user guide, "cfn-response module".
"use strict";
const http = require("node:http");

exports.SUCCESS = "SUCCESS";
exports.FAILED = "FAILED";

exports.send = (event, context, responseStatus, responseData, physicalResourceId, noEcho) =>
  new Promise((resolve) => {
    const body = JSON.stringify({
      Status: responseStatus,
      Reason: `See the details in CloudWatch Log Stream: ${context.logStreamName}`,
      PhysicalResourceId: physicalResourceId || context.logStreamName,
      StackId: event.StackId,
      RequestId: event.RequestId,
      LogicalResourceId: event.LogicalResourceId,
      NoEcho: noEcho || false,
      Data: responseData || {},
    });
    const end = () => resolve(context.done());
    const headers = { "content-length": Buffer.byteLength(body) };
    const request = http.request(event.ResponseURL, { method: "PUT", headers }, (answer) => answer.resume().on("end", end));
    request.on("error", (error) => {
      console.log("send(..) failed executing the request:", error.message);
      end();
    });
    request.end(body);
  });
