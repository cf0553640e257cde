export { sparePort } from '../../src/embedded/spare-port.ts';
