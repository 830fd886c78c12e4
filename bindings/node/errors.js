'use strict';
// What goes wrong: one class for each code of the library, in the order of the codes.

class HoldfastError extends Error {
  constructor(message, about = {}) {
    super(message);
    this.name = this.constructor.name;
    this.operation = about.operation ?? '';
    this.lockName = about.name ?? '';
    this.store = about.store ?? '';
    this.retryable = about.retryable ?? false;
    this.outcomeUnknown = about.outcomeUnknown ?? false;
    this.leaseGone = about.leaseGone ?? false;
  }
}

const NAMES = [
  'Busy', 'TimedOut', 'Cancelled', 'Lost', 'NotOwner', 'Unavailable', 'Overloaded', 'Deadlock', 'KindMismatch', 'CapacityMismatch',
  'Unsupported', 'InvalidName', 'InvalidArgument', 'ForeignData', 'NewerFormat', 'Corrupt', 'ReadOnly', 'NoSpace', 'NotPermitted',
  'Forked', 'Internal'];

const byCode = new Map();
const errors = {HoldfastError};
NAMES.forEach((name, index) => {
  const kind = {[name]: class extends HoldfastError {}}[name];
  kind.prototype.code = index + 1;
  byCode.set(index + 1, kind);
  errors[name] = kind;
});

module.exports = {...errors, byCode};
