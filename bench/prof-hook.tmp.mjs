import { Session } from 'node:inspector'; import fs from 'node:fs';
const s = new Session(); s.connect(); s.post('Profiler.enable'); s.post('Profiler.setSamplingInterval',{interval:500});
process.on('SIGWINCH',()=>s.post('Profiler.start'));
process.on('SIGUSR2',()=>s.post('Profiler.stop',(e,r)=>{fs.writeFileSync(process.env.PROF_OUT,JSON.stringify(r.profile));}));
